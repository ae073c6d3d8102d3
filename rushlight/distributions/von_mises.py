"""VonMises(loc, concentration)."""

from __future__ import annotations

import math

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import bool_
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class VonMises(Distribution):
    """Angles around `loc`, with a density proportional to exp(concentration * cos(angle - loc)).

    Draws by the rejection method of D. J. Best and N. I. Fisher (1979), in float64.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expand_params(VonMises, batch_shape, _instance, loc=0, concentration=0)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self):
        """The circular variance, 1 - I1 / I0."""
        return 1 - aten.special_i1e(self.concentration) / aten.special_i0e(self.concentration)

    def sample(self, sample_shape=()):
        with no_grad():
            shape = self._extended_shape(sample_shape)
            turned = _best_fisher(self.concentration.double().expand(shape))
            angle = (turned + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        exponent = self.concentration * ((value - self.loc).cos() - 1)
        return exponent - math.log(2 * math.pi) - aten.special_i0e(self.concentration).log()


def _best_fisher(concentration: Tensor) -> Tensor:
    tau = 1 + (1 + 4 * concentration.square()).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
    # For small concentrations the closed form cancels; this is its expansion.
    r = aten.where(concentration < 1e-5, 1 / concentration + concentration, (1 + rho.square()) / (2 * rho))
    angle, done = aten.zeros_like(concentration), aten.zeros_like(concentration, dtype=bool_)
    while not done.all():
        u = aten.rand((3, *concentration.shape), dtype=concentration.dtype, device=concentration.device)
        z = (math.pi * u[0]).cos()
        f = ((1 + r * z) / (r + z)).clamp(min=-1, max=1)
        c = concentration * (r - f)
        accepted = ((c * (2 - c) - u[1]) > 0) | ((c / u[1]).log() + 1 - c >= 0)
        angle = aten.where(accepted & ~done, (u[2] - 0.5).sign() * f.acos(), angle)
        done = done | accepted
    return angle
