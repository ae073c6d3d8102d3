"""Weibull(scale, concentration)."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AffineTransform, PowerTransform
from rushlight.distributions.utils import broadcast_all, euler_constant
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Weibull(TransformedDistribution):
    """scale * x**(1 / concentration) of standard exponential numbers x."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(aten.ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._check_instance(Weibull, _instance)
        for name in ("scale", "concentration", "concentration_reciprocal"):
            setattr(new, name, getattr(self, name).expand(batch_shape))
        return super().expand(batch_shape, new)

    def _moment(self, order: int) -> Tensor:
        """Return the mean of the standardised number to the power of `order`."""
        return aten.lgamma(1 + order * self.concentration_reciprocal).exp()

    mean = property(lambda self: self.scale * self._moment(1))
    variance = property(lambda self: self.scale.square() * (self._moment(2) - self._moment(1).square()))

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1) / self.concentration).pow(self.concentration_reciprocal)

    def entropy(self):
        log_scale = (self.scale * self.concentration_reciprocal).log()
        return euler_constant * (1 - self.concentration_reciprocal) + log_scale + 1
