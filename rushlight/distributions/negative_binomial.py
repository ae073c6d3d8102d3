"""NegativeBinomial(total_count, probs, logits)."""

from __future__ import annotations

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.binary_parameters import BinaryParameters, given_parameter
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.utils import broadcast_all, lazy_property
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class NegativeBinomial(BinaryParameters):
    """The number of successes before `total_count` failures; `total_count` may be any nonnegative number."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
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
        return self._expand_params(NegativeBinomial, batch_shape, _instance, total_count=0)

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0))
    variance = property(lambda self: self.mean / aten.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self):
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape=()):
        with no_grad():
            return aten.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        chance = self.total_count * aten.log_sigmoid(-self.logits) + value * aten.log_sigmoid(self.logits)
        arrangements = aten.lgamma(self.total_count + value) - aten.lgamma(1 + value) - aten.lgamma(self.total_count)
        return chance + aten.where(self.total_count + value == 0, 0, arrangements)
