"""LowRankMultivariateNormal(loc, cov_factor, cov_diag)."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.multivariate_normal import log_diagonal, mahalanobis
from rushlight.distributions.utils import _standard_normal, lazy_property
from rushlight.ops.functional import broadcast_shapes
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class LowRankMultivariateNormal(Distribution):
    """Vectors (..., D) whose covariance is W W^T + diag(d), W = `cov_factor` (..., D, R) and d = `cov_diag` (..., D).

    Determinant and inverse go through the R x R matrix I + W^T diag(1/d) W (Woodbury's identity).
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        batch = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self.loc = loc.expand((*batch, *event))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self.cov_diag = cov_diag.expand((*batch, *event))
        self._capacitance_tril = _capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(
            LowRankMultivariateNormal, batch_shape, _instance, loc=1, cov_factor=2, cov_diag=1,
            covariance_matrix=2, precision_matrix=2, scale_tril=2,
        )  # fmt: skip
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        return new

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self.cov_factor.square().sum(-1) + self.cov_diag)

    def _matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self):
        return aten.linalg_cholesky(self.covariance_matrix)

    @lazy_property
    def covariance_matrix(self):
        factor = self._unbroadcasted_cov_factor
        return self._matrix(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self):
        inverse = self._unbroadcasted_cov_diag.reciprocal()
        scaled = self._unbroadcasted_cov_factor.mT * inverse.unsqueeze(-2)
        solved = aten.linalg_solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._matrix(inverse.diag_embed() - solved.mT @ solved)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        common = _standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc.dtype, self.loc.device)
        own = _standard_normal(shape, self.loc.dtype, self.loc.device)
        mixed = (self._unbroadcasted_cov_factor @ common.unsqueeze(-1)).squeeze(-1)
        return self.loc + mixed + self._unbroadcasted_cov_diag.sqrt() * own

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        difference = value - self.loc
        distance = low_rank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, difference, self._capacitance_tril
        )
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_determinant() + distance)

    def _log_determinant(self) -> Tensor:
        return 2 * log_diagonal(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def entropy(self):
        constant = self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_determinant())).expand(self._batch_shape)


def _capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """Return the Cholesky factor of I + W^T diag(1/d) W."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    return aten.linalg_cholesky(scaled @ factor + aten.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device))


def low_rank_mahalanobis(factor: Tensor, diagonal: Tensor, difference: Tensor, capacitance_tril: Tensor) -> Tensor:
    """Return the squared Mahalanobis distance of W W^T + diag(d), through the Cholesky factor of I + W^T diag(1/d) W."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    projected = (scaled @ difference.unsqueeze(-1)).squeeze(-1)
    return (difference.square() / diagonal).sum(-1) - mahalanobis(capacitance_tril, projected)
