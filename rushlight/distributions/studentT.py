"""StudentT(df, loc, scale)."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.chi2 import Chi2
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import _standard_normal, broadcast_all
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class StudentT(Distribution):
    """Student's t distribution with `df` degrees of freedom, moved by `loc` and stretched by `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(StudentT, batch_shape, _instance, df=0, loc=0, scale=0)
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    mean = property(lambda self: aten.where(self.df > 1, self.loc, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        finite = self.scale.square() * self.df / (self.df - 2)
        return aten.where(self.df > 2, finite, aten.where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape=()):
        normal = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * (normal * (self._chi2.rsample(sample_shape) / self.df).rsqrt())

    def _log_constant(self):
        half = 0.5 * self.df
        return self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + aten.lgamma(half) - aten.lgamma(half + 0.5)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        standard = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (standard.square() / self.df).log1p() - self._log_constant()

    def entropy(self):
        half = 0.5 * (self.df + 1)
        return self._log_constant() + half * (aten.digamma(half) - aten.digamma(0.5 * self.df))
