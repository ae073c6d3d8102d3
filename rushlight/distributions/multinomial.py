"""Multinomial(total_count, probs, logits)."""

from __future__ import annotations

import math

from rushlight.core.dtype import int64
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.binomial import Binomial
from rushlight.distributions.categorical import Categorical
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Multinomial(Distribution):
    """The distribution of the counts of K categories, (..., K), in `total_count` draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(Multinomial, batch_shape, _instance)
        new.total_count, new._categorical = self.total_count, self._categorical.expand(batch_shape)
        new._binomial = Binomial(total_count=self.total_count, probs=new._categorical.probs)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        drawn = self._categorical.sample((self.total_count, *Size(sample_shape)))
        last = drawn.permute((*range(1, drawn.dim()), 0))
        counts = aten.zeros(self._extended_shape(sample_shape), dtype=int64, device=drawn.device)
        return counts.scatter_add(-1, last, aten.ones_like(last)).to(self.probs.dtype)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        arrangements = aten.lgamma(value.sum(-1) + 1) - aten.lgamma(value + 1).sum(-1)
        return arrangements + aten.where((value == 0) & (logits == -math.inf), 0, logits * value).sum(-1)

    def entropy(self):
        count = tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        values = self._binomial.enumerate_support(expand=False)[1:]
        weights = self._binomial.log_prob(values).exp()
        spread = (weights * aten.lgamma(values + 1)).sum((0, -1))
        return count * self._categorical.entropy() - aten.lgamma(count + 1) + spread
