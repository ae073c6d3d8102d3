"""InverseGamma(concentration, rate)."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import PowerTransform
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class InverseGamma(TransformedDistribution):
    """1 / x of gamma numbers x."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._check_instance(InverseGamma, _instance))

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))
    mean = property(lambda self: aten.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf))

    @property
    def variance(self):
        finite = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return aten.where(self.concentration > 2, finite, math.inf)

    def entropy(self):
        shape = self.concentration
        return shape + self.rate.log() + aten.lgamma(shape) - (1 + shape) * aten.digamma(shape)
