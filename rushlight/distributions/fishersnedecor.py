"""FisherSnedecor(df1, df2)."""

from __future__ import annotations

import math

from rushlight.core.dtype import finfo
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class FisherSnedecor(Distribution):
    """The F distribution: the quotient of two means of `df1` and `df2` squared normal numbers."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = (Gamma(df * 0.5, df * 0.5) for df in (self.df1, self.df2))
        super().__init__(self.df1.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(FisherSnedecor, batch_shape, _instance, df1=0, df2=0)
        new._gamma1, new._gamma2 = self._gamma1.expand(batch_shape), self._gamma2.expand(batch_shape)
        return new

    mean = property(lambda self: aten.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan))
    mode = property(lambda self: aten.where(self.df1 > 2, self._mode(), math.nan))

    def _mode(self):
        return (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)

    @property
    def variance(self):
        df2 = aten.where(self.df2 > 4, self.df2, math.nan)
        return 2 * df2.square() * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).square() * (df2 - 4))

    def rsample(self, sample_shape=()):
        above, below = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, quotient = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        constant = aten.lgamma(half1 + half2) - aten.lgamma(half1) - aten.lgamma(half2)
        density = half1 * quotient.log() + (half1 - 1) * value.log() - (half1 + half2) * (quotient * value).log1p()
        return constant + density
