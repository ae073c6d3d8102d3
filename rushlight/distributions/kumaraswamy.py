"""Kumaraswamy(concentration1, concentration0)."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AffineTransform, PowerTransform
from rushlight.distributions.uniform import Uniform
from rushlight.distributions.utils import broadcast_all, euler_constant
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Kumaraswamy(TransformedDistribution):
    """(1 - u**(1 / concentration0))**(1 / concentration1) of uniform numbers u."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(aten.zeros_like(self.concentration0), aten.ones_like(self.concentration0), validate_args=validate_args)
        steps = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._check_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, new)

    def _moment(self, order: int) -> Tensor:
        first = 1 + order / self.concentration1
        logarithm = aten.lgamma(first) + aten.lgamma(self.concentration0) - aten.lgamma(first + self.concentration0)
        return self.concentration0 * logarithm.exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).square())

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        inside = ((1 - a) / (1 - a * b)).pow(1 / a)
        return aten.where((a < 1) | (b < 1), math.nan, inside)

    def entropy(self):
        first, second = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = aten.digamma(self.concentration0 + 1) + euler_constant
        return second + first * harmonic - self.concentration1.log() - self.concentration0.log()
