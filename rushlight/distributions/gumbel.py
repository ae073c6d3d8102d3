"""Gumbel(loc, scale)."""

from __future__ import annotations

import math

from rushlight.core.dtype import finfo
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AffineTransform, ExpTransform
from rushlight.distributions.uniform import Uniform
from rushlight.distributions.utils import broadcast_all, euler_constant
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Gumbel(TransformedDistribution):
    """The Gumbel distribution, of the largest of many numbers: loc - scale * log(-log(u)) of uniform numbers u."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        base = Uniform(
            aten.full_like(self.loc, limits.tiny), aten.full_like(self.loc, 1 - limits.eps), validate_args=validate_args
        )
        negated = AffineTransform(0, -aten.ones_like(self.scale))
        steps = [ExpTransform().inv, negated, ExpTransform().inv, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._check_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, new)

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.square())

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        standard = (self.loc - value) / self.scale
        return standard - standard.exp() - self.scale.log()

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)
