"""MultivariateNormal(loc, covariance_matrix, precision_matrix, scale_tril)."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import _standard_normal, lazy_property
from rushlight.ops.functional import broadcast_shapes
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def log_diagonal(matrix: Tensor) -> Tensor:
    """Return the sum of the logarithms of the diagonal: half the log determinant for a Cholesky factor."""
    return matrix.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def mahalanobis(factor: Tensor, difference: Tensor) -> Tensor:
    """Return the squared Mahalanobis distance |factor^-1 difference|^2 for Cholesky factors (..., D, D) and vectors (...,
    D)."""
    batch = broadcast_shapes(factor.shape[:-2], difference.shape[:-1])
    size = difference.shape[-1]
    solved = aten.linalg_solve_triangular(
        factor.expand((*batch, size, size)), difference.expand((*batch, size)).unsqueeze(-1), upper=False
    )
    return solved.square().sum((-2, -1))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse, without inverting: from the factor of the matrix with reversed axes."""
    factor = aten.linalg_cholesky(aten.flip(precision, (-2, -1)))
    upper = aten.flip(factor, (-2, -1)).mT
    identity = aten.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return aten.linalg_solve_triangular(upper, identity, upper=False)


class MultivariateNormal(Distribution):
    """Vectors (..., D) of mean `loc`, with a covariance, its inverse or its Cholesky factor (..., D, D)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = given_matrix(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch, *matrix.shape[-2:])))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = matrix
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = aten.linalg_cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(
            MultivariateNormal, batch_shape, _instance, loc=1, covariance_matrix=2, precision_matrix=2, scale_tril=2
        )
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def _matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self):
        return self._matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        factor = self._unbroadcasted_scale_tril
        return self._matrix(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self):
        return self._matrix(aten.cholesky_inverse(self._unbroadcasted_scale_tril))

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self):
        squares = self._unbroadcasted_scale_tril.square().sum(-1)
        return squares.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape=()):
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - log_diagonal(factor)

    def entropy(self):
        half = log_diagonal(self._unbroadcasted_scale_tril)
        return (0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + half).expand(self._batch_shape)


def given_matrix(**matrices: Tensor | None) -> tuple[str, Tensor]:
    """Return the only matrix that is not None, with its name. ValueError for none, several, or fewer than two dimensions."""
    given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
    if len(given) != 1:
        raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    name, matrix = given[0]
    if matrix.dim() < 2:
        raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
    return name, matrix
