"""Pareto(scale, alpha)."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AffineTransform, ExpTransform
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Pareto(TransformedDistribution):
    """Numbers above `scale` with a density that falls with the power alpha + 1."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._check_instance(Pareto, _instance)
        new.scale, new.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        return super().expand(batch_shape, new)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    mode = property(lambda self: self.scale)

    @property
    def mean(self):
        return aten.where(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), math.inf)

    @property
    def variance(self):
        finite = self.scale.square() * self.alpha / ((self.alpha - 1).square() * (self.alpha - 2))
        return aten.where(self.alpha > 2, finite, math.inf)

    def entropy(self):
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()
