"""Categorical(probs, logits)."""

from __future__ import annotations

import math

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import finfo, int64
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.binary_parameters import given_parameter
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import lazy_property, logits_to_probs, probs_to_logits
from rushlight.ops.functional import broadcast_tensors
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Categorical(Distribution):
    """Indices from 0 to K - 1, by probabilities (..., K), which are normalised, or unnormalised log probabilities."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        self._given, value = given_parameter(probs, logits)
        if value.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if self._given == "probs":
            self.probs = value / value.sum(-1, keepdim=True)
        else:
            self.logits = value - value.logsumexp(-1, keepdim=True)
        self._num_events = value.size(-1)
        super().__init__(value.shape[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Tensor:
        return self.probs if self._given == "probs" else self.logits

    @property
    def param_shape(self) -> Size:
        return self._param.size()

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(Categorical, batch_shape, _instance, probs=1, logits=1)
        new._given, new._num_events = self._given, self._num_events
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    mean = variance = property(lambda self: aten.full(self._batch_shape, math.nan, dtype=self._param.dtype))
    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape=()):
        rows = self.probs.reshape(-1, self._num_events)
        with no_grad():
            drawn = aten.multinomial(rows, Size(sample_shape).numel(), True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, log_probs = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_probs.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        finite = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(finite * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        return self._shape_support(aten.arange(self._num_events, dtype=int64, device=self._param.device), expand)
