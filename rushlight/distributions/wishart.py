"""Wishart(df, covariance_matrix, precision_matrix, scale_tril)."""

from __future__ import annotations

import math
import warnings

from rushlight.core.dtype import finfo
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.chi2 import Chi2
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.multivariate_normal import given_matrix, log_diagonal, precision_to_scale_tril
from rushlight.distributions.utils import lazy_property
from rushlight.ops.construct import as_tensor
from rushlight.ops.functional import broadcast_shapes
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Wishart(ExponentialFamily):
    """Sums of `df` outer products of normal vectors (..., D) with a covariance; `df` > D - 1 need not be an integer.

    Draws by Bartlett's decomposition.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        matrices = {
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril,
        }  # fmt: skip
        if sum(matrix is not None for matrix in matrices.values()) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if any(matrix is not None and matrix.dim() < 2 for matrix in matrices.values()):
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        name, matrix = given_matrix(**matrices)
        df = as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch, event = broadcast_shapes(matrix.shape[:-2], df.shape), matrix.shape[-2:]
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand((*batch, *event)))
        if (self.df <= event[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        super().__init__(batch, event, validate_args=validate_args)
        if (self.df < event[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2
            )
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = matrix
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = aten.linalg_cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)
        self._chi2 = self._diagonal_draws()

    def _diagonal_draws(self) -> Chi2:
        offset = aten.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - offset.expand((*self._batch_shape, self._event_shape[-1])))

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(Wishart, batch_shape, _instance, df=0, covariance_matrix=2, precision_matrix=2, scale_tril=2)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        new._chi2 = new._diagonal_draws()
        return new

    def _matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape))

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

    mean = property(lambda self: self.df[..., None, None] * self.covariance_matrix)

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return aten.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self):
        scale = self.covariance_matrix
        diagonal = scale.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (scale.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape=(), max_try_correction: int | None = None):
        size = self._event_shape[-1]
        diagonal = self._chi2.rsample(sample_shape).clamp(min=finfo(self.df.dtype).tiny).sqrt().diag_embed()
        rows = aten.tril_indices(size, size, -1)
        shape = (*Size(sample_shape), *self._batch_shape, size * (size - 1) // 2)
        below = aten.randn(shape, dtype=self.df.dtype, device=self.df.device)
        noise = diagonal.clone()
        noise[..., rows[0], rows[1]] = below
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        size, df = self._event_shape[-1], self.df
        scale = self._unbroadcasted_scale_tril
        trace = aten.cholesky_solve(value, scale.expand((*value.shape[:-2], size, size)))
        return (
            -df * (size * math.log(2) / 2 + log_diagonal(scale))
            - aten.mvlgamma(df / 2, size)
            + (df - size - 1) / 2 * aten.linalg_slogdet(value)[1]
            - trace.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self):
        size, df = self._event_shape[-1], self.df
        return (
            (size + 1) * (size * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril))
            + aten.mvlgamma(df / 2, size)
            - (df - size - 1) / 2 * _multivariate_digamma(df / 2, size)
            + df * size / 2
        )

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        return half * (-aten.linalg_slogdet(-2 * x)[1] + math.log(2) * size) + aten.mvlgamma(half, size)


def _multivariate_digamma(half: Tensor, size: int) -> Tensor:
    steps = aten.arange(size, dtype=half.dtype, device=half.device) / 2
    return aten.digamma(half.unsqueeze(-1) - steps).sum(-1)
