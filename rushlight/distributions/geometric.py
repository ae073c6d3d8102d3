"""Geometric(probs, logits)."""

from __future__ import annotations

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import finfo
from rushlight.core.following import is_compiling
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.binary_parameters import BinaryParameters
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Geometric(BinaryParameters):
    """The number of failures before the first success."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Tensor | float | None = None, logits: Tensor | float | None = None, validate_args: bool | None = None
    ):
        value = self._set_parameter(probs, logits)
        super().__init__(value.shape, validate_args=validate_args)
        if self._validate_args and self._is_probs and not is_compiling() and not (value > 0).all():
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to "
                f"be positive but found invalid values:\n{value[value <= 0]}"
            )

    def expand(self, batch_shape, _instance=None):
        return self._expand_params(Geometric, batch_shape, _instance)

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: aten.zeros_like(self.probs))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape=()):
        with no_grad():
            uniform = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (uniform.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        failure = aten.where((probs == 1) & (value == 0), 0, probs)
        return value * (-failure).log1p() + self.probs.log()

    def entropy(self):
        return aten.binary_cross_entropy_with_logits(self.logits, self.probs, reduction=0) / self.probs
