"""Dirichlet(concentration)."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Dirichlet(ExponentialFamily):
    """Points of the simplex: shares of independent gamma numbers with shapes `concentration` (..., K)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expand_params(Dirichlet, batch_shape, _instance, concentration=1)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self):
        above = (self.concentration - 1).clamp(min=0.0)
        share = above / above.sum(-1, True)
        below = (self.concentration < 1).all(-1)
        if below.any():
            corner = aten.one_hot(self.concentration.argmax(-1), self.concentration.shape[-1]).to(share.dtype)
            share = aten.where(below.unsqueeze(-1), corner, share)
        return share

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        return aten._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        shapes = self.concentration
        return aten.xlogy(shapes - 1, value).sum(-1) + aten.lgamma(shapes.sum(-1)) - aten.lgamma(shapes).sum(-1)

    def entropy(self):
        shapes, count = self.concentration, self.concentration.shape[-1]
        total = shapes.sum(-1)
        return (
            aten.lgamma(shapes).sum(-1)
            - aten.lgamma(total)
            - (count - total) * aten.digamma(total)
            - ((shapes - 1) * aten.digamma(shapes)).sum(-1)
        )

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return aten.lgamma(x).sum(-1) - aten.lgamma(x.sum(-1))
