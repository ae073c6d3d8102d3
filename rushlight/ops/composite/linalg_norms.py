"""Composite norms of vectors and matrices, condition numbers, distances."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.dtype import dtype as torch_dtype
from rushlight.core.dtype import float32, promote_types
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.composite.linalg_common import aten
from rushlight.ops.composite.pointwise import with_inplace
from rushlight.ops.meta.common import reduced_dims
from rushlight.ops.meta.linalg_checks import check_dim_pair, check_inexact, check_matrices, check_square
from rushlight.ops.registry import composite


def _check_dtype(name: str, self: Tensor, wanted: torch_dtype | None) -> None:
    """Raise RuntimeError unless a norm of `self` may be computed in `wanted`."""
    given = self.dtype
    if given.is_integral:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {given.scalar_name}")
    if wanted is None:
        return
    if wanted.is_integral:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {wanted.scalar_name}")
    if given.is_complex != wanted.is_complex:
        kind = "complex for complex" if given.is_complex else "real for real"
        raise RuntimeError(f"{name}: dtype should be {kind} inputs, but got {wanted.scalar_name}")
    if promote_types(given, wanted) is not wanted:
        raise RuntimeError(
            f"{name}: the dtype of the input ({given.scalar_name}) should be convertible without narrowing to the specified "
            f"dtype ({wanted.scalar_name})"
        )


def _check_not_empty(self: Tensor, ord: float, dim: Sequence[int] | int | None) -> None:
    """Raise RuntimeError for a norm over no elements that has no value."""
    if self.numel() or 0 <= ord < math.inf:
        return
    if dim is None or dim == []:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have an "
            "identity"
        )
    for axis in reduced_dims(self.dim(), dim):
        if self.dim() and self.size(axis) == 0:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord} norm on the dimension {axis} because this dimension is empty and "
                "the operation does not have an identity"
            )


@composite(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
)
def vector_norm(self, ord=2, dim=None, keepdim=False, *, dtype=None):
    _check_dtype("linalg.vector_norm", self, dtype)
    _check_not_empty(self, ord, dim)
    value = self if dtype is None else self.to(dtype)
    # computed in float32, because powers would overflow half precision
    if value.dtype.is_floating_point and value.dtype.itemsize < 4:
        return vector_norm(value.to(float32), ord, dim, keepdim).to(value.dtype)
    if value.is_complex():
        value = aten.abs.default(value)
    if ord == 2:
        return _root(aten.sum.dim_IntList(aten.mul.Tensor(value, value), dim, keepdim), 0.5)
    magnitude = aten.abs.default(value)
    dims = () if dim is None else dim
    if ord == math.inf:
        return aten.amax.default(magnitude, dims, keepdim)
    if ord == -math.inf:
        return aten.amin.default(magnitude, dims, keepdim)
    if ord == 0:
        # sign() counts nonzero elements, with gradient 0, so that the norm stays differentiable. NaN is set to 1 so that it
        # counts.
        counted = aten.masked_fill.Scalar(magnitude, aten.isnan.default(magnitude), 1)
        return aten.sum.dim_IntList(aten.sign.default(counted), dim, keepdim)
    if ord == 1:
        return aten.sum.dim_IntList(magnitude, dim, keepdim)
    return _root(aten.sum.dim_IntList(_power(magnitude, ord), dim, keepdim), 1.0 / ord)


def _is_recorded(value: Tensor) -> bool:
    return state.grad_enabled and value.requires_grad


def _root(total: Tensor, exponent: float) -> Tensor:
    """Return `total ** exponent`, with gradient 0 instead of infinity where `total` is 0."""

    def power(value: Tensor) -> Tensor:
        return aten.sqrt.default(value) if exponent == 0.5 else aten.pow.Tensor_Scalar(value, exponent)

    if not _is_recorded(total):
        return power(total)
    zero = total == 0
    bounded = aten.masked_fill.Scalar(total, zero, 1)
    return aten.where.self(zero, power(total.detach()), power(bounded))


def _power(magnitude: Tensor, exponent: float) -> Tensor:
    """Return `magnitude ** exponent`, with gradient 0 at 0, the subgradient of the norm."""
    if exponent >= 1 or not _is_recorded(magnitude):
        return aten.pow.Tensor_Scalar(magnitude, exponent)
    zero = magnitude == 0
    bounded = aten.masked_fill.Scalar(magnitude, zero, 1)
    powers = aten.pow.Tensor_Scalar(bounded, exponent)
    return aten.where.self(zero, aten.pow.Tensor_Scalar(magnitude.detach(), exponent), powers)


@composite(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2, -1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
)
def matrix_norm(self, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    name = "linalg.matrix_norm"
    if ord not in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    check_matrices(name, self)
    check_dim_pair(name, dim, self.dim())
    _check_dtype(name, self, dtype)
    if ord == "fro":
        return vector_norm(self, 2, dim, keepdim, dtype=dtype)
    value = self if dtype is None else self.to(dtype)
    rows, columns = (wrap_dim(axis, value.dim()) for axis in dim)
    if ord in ("nuc", 2, -2):
        return _spectral_norm(value, ord, rows, columns, keepdim)
    summed, compared = (columns, rows) if abs(ord) == math.inf else (rows, columns)
    totals = aten.sum.dim_IntList(aten.abs.default(value), [summed], True)
    return _drop(_extremum(totals, compared, ord), (rows, columns), keepdim)


def _extremum(values: Tensor, dim: int, ord: float) -> Tensor:
    """Return the maximum along `dim` for a positive order (0 if empty), the minimum for a negative one."""
    if ord < 0:
        return aten.amin.default(values, [dim], True)
    if values.size(dim):
        return aten.amax.default(values, [dim], True)
    return aten.sum.dim_IntList(values, [dim], True)


def _drop(value: Tensor, dims: Sequence[int], keepdim: bool) -> Tensor:
    return value if keepdim else aten.squeeze.dims(value, list(dims))


def _spectral_norm(value: Tensor, ord: float | str, rows: int, columns: int, keepdim: bool) -> Tensor:
    """Return the sum, the largest or the smallest of the singular values."""
    values = aten.linalg_svdvals.default(aten.movedim.intlist(value, [rows, columns], [-2, -1]))
    if ord == "nuc":
        result = aten.sum.dim_IntList(values, [-1])
    else:
        result = aten.squeeze.dims(_extremum(values, values.dim() - 1, ord), [-1])
    if keepdim:
        for axis in sorted((rows, columns)):
            result = aten.unsqueeze.default(result, axis)
    return result


@composite(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
)
def linalg_norm(self, ord=None, dim=None, keepdim=False, *, dtype=None):
    if isinstance(dim, int):
        dim = [dim]
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if ord is None:
        return vector_norm(self, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        if self.dim() not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.dim()}D."
            )
        dim = list(range(self.dim()))
    if len(dim) == 2 or isinstance(ord, str):
        return matrix_norm(self, ord, dim, keepdim, dtype=dtype)
    return vector_norm(self, ord, dim, keepdim, dtype=dtype)


@composite("norm.Scalar(Tensor self, Scalar p=2) -> Tensor")
def norm_all(self, p=2):
    return vector_norm(self, p)


@composite(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
)
def norm(self, p, dim, keepdim=False, *, dtype=None):
    return vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


@composite("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor")
def norm_all_as(self, p, *, dtype):
    return vector_norm(self, 2 if p is None else p, dtype=dtype)


@composite("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
def frobenius_norm(self, dim, keepdim=False):
    return vector_norm(self, 2, dim, keepdim)


@composite("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor")
def nuclear_norm(self, keepdim=False):
    return matrix_norm(self, "nuc", (-2, -1), keepdim)


@composite("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor")
def nuclear_norm_dim(self, dim, keepdim=False):
    return matrix_norm(self, "nuc", dim, keepdim)


@composite("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", "linalg_cond.p_str(Tensor self, str p) -> Tensor")
def linalg_cond(self, p=None):
    """Return the norm of the matrix times that of its inverse; infinity for singular matrices."""
    check_matrices("linalg.cond", self)
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p in (None, 2, -2):
        values = aten.linalg_svdvals.default(self)
        if not values.size(-1):
            return aten.new_zeros.default(values, values.shape[:-1])
        largest, smallest = aten.select.int(values, -1, 0), aten.select.int(values, -1, -1)
        return smallest / largest if p == -2 else largest / smallest
    check_square(f"linalg.cond(ord={p})", self)
    check_inexact("linalg.cond", self)
    inverse, info = aten.linalg_inv_ex.default(self)
    if not self.numel():
        return aten.new_zeros.default(self, self.shape[:-2], dtype=self.dtype.to_real())
    singular = aten.unsqueeze.default(aten.unsqueeze.default(info != 0, -1), -1)
    inverse = aten.where.self(singular, math.inf, inverse)
    if p == "nuc":
        # The SVD fails for infinite entries, so a finite matrix stands in.
        finite = aten.where.self(singular, 0, inverse)
        return aten.where.self(info != 0, math.inf, matrix_norm(self, p) * matrix_norm(finite, p))
    return matrix_norm(self, p) * matrix_norm(inverse, p)


@composite("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
def dist(self, other, p=2):
    return vector_norm(aten.sub.Tensor(self, other), p)


@with_inplace("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor")
def renorm(self, p, dim, maxnorm):
    if isinstance(p, complex) or p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported (p={p})")
    if isinstance(maxnorm, complex) or not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if self.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.dim()} dimensions")
    axis = wrap_dim(dim, self.dim())
    length = vector_norm(self, p, [other for other in range(self.dim()) if other != axis], True)
    # The margin keeps rounding from pushing the result above maxnorm.
    factor = aten.where.self(length > maxnorm, maxnorm / (length + 1e-7), 1.0)
    return self * factor


@composite("cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor")
def cdist(x1, x2, p=2.0, compute_mode=None):
    if compute_mode not in (None, 0, 1, 2):
        raise RuntimeError(f"possible modes: 0, 1, 2, but was: {compute_mode}")
    return aten._cdist_forward.default(x1, x2, p, compute_mode)


@composite("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor")
def euclidean_dist(x1, x2):
    return aten._cdist_forward.default(x1, x2, 2.0, 1)


@composite("pdist(Tensor self, float p=2) -> Tensor")
def pdist(self, p=2.0):
    return aten._pdist_forward.default(self, p)
