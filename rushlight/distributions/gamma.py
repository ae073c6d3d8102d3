"""Gamma(concentration, rate)."""

from __future__ import annotations

from rushlight.core.dtype import finfo
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.construct import as_tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Gamma(ExponentialFamily):
    """The gamma distribution with shape `concentration` and inverse scale `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expand_params(Gamma, batch_shape, _instance, concentration=0, rate=0)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.square())

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        drawn = aten._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        drawn.detach().clamp_(min=finfo(drawn.dtype).tiny)
        return drawn

    def log_prob(self, value):
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            aten.xlogy(self.concentration, self.rate)
            + aten.xlogy(self.concentration - 1, value)
            - self.rate * value
            - aten.lgamma(self.concentration)
        )

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return aten.special_gammainc(self.concentration, self.rate * value)

    def entropy(self):
        shape = self.concentration
        return shape - self.rate.log() + aten.lgamma(shape) + (1 - shape) * aten.digamma(shape)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return aten.lgamma(x + 1) + (x + 1) * (-y.reciprocal()).log()
