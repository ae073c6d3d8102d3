"""Cauchy(loc, scale)."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Cauchy(Distribution):
    """The Cauchy distribution with median `loc` and half width `scale` at half maximum; it has no mean."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expand_params(Cauchy, batch_shape, _instance, loc=0, scale=0)

    mean = property(lambda self: aten.full_like(self.loc, math.nan))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: aten.full_like(self.loc, math.inf))

    def rsample(self, sample_shape=()):
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return aten.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return aten.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
