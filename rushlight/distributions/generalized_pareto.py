"""GeneralizedPareto(loc, scale, concentration)."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class GeneralizedPareto(Distribution):
    """Excesses over `loc`: exponential at concentration 0, heavy tailed above, bounded below."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expand_params(GeneralizedPareto, batch_shape, _instance, loc=0, scale=0, concentration=0)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        end = aten.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, end)

    def _standardize(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the standardised value, a mask of concentrations close to 0, and a concentration that is safe to divide by."""
        standard = (value - self.loc) / self.scale
        exponential = aten.isclose(self.concentration, aten.zeros_like(self.concentration))
        return standard, exponential, aten.where(exponential, 1.0, self.concentration)

    def _log_survival(self, value: Tensor) -> Tensor:
        standard, exponential, safe = self._standardize(value)
        return aten.where(exponential, -standard, -(safe * standard).log1p() / safe)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(aten.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return (1 + self.concentration) * self._log_survival(value) - self.scale.log()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -self._log_survival(value).expm1()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return log(1 - cdf)."""
        if self._validate_args:
            self._validate_sample(value)
        return self._log_survival(value)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return log(cdf)."""
        return self.cdf(value).log()

    def icdf(self, value):
        _, exponential, safe = self._standardize(value)
        log_survival = (-value).log1p()
        standard = aten.where(exponential, -log_survival, (-safe * log_survival).expm1() / safe)
        return self.loc + self.scale * standard

    @property
    def mean(self):
        return aten.where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), math.inf)

    @property
    def variance(self):
        finite = self.scale.square() / ((1 - self.concentration).square() * (1 - 2 * self.concentration))
        return aten.where(self.concentration < 0.5, finite, math.inf)

    mode = property(lambda self: self.loc)

    def entropy(self):
        return self.scale.log() + self.concentration + 1
