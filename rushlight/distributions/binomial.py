"""Binomial(total_count, probs, logits)."""

from __future__ import annotations

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.binary_parameters import BinaryParameters, given_parameter
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Binomial(BinaryParameters):
    """The number of successes among `total_count` trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self._given, value = given_parameter(probs, logits)
        count, value = broadcast_all(total_count, value)
        self.total_count = count.type_as(value)
        setattr(self, self._given, value)
        super().__init__(value.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expand_params(Binomial, batch_shape, _instance, total_count=0)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return aten.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        count = self.total_count
        arrangements = aten.lgamma(count + 1) - aten.lgamma(value + 1) - aten.lgamma(count - value + 1)
        return arrangements + value * self.logits - count * aten.softplus(self.logits)

    def entropy(self):
        if (self.total_count != self.total_count.max()).any():
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        most = int(self.total_count.max())
        if (self.total_count != most).any():
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return self._shape_support(aten.arange(1 + most, dtype=self._param.dtype, device=self._param.device), expand)
