"""CPU kernels of Cholesky, LU, LDL and QR factorizations, by NumPy where it has them."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import int32
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.linalg_lapack import adjoint, by_columns, lapack, raise_first, stacked, zeros_of
from rushlight.ops.cpu.linalg_plain import cholesky_status, householder, lu_factor, orthogonal
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.linalg_checks import check_inexact, check_matrices, check_square_inexact
from rushlight.ops.meta.linalg_factorizations import check_householder, check_lu_factor, check_lu_unpack, qr_sizes
from rushlight.ops.registry import cpu


@cpu("linalg_cholesky_ex")
def cholesky_ex(self, *, upper=False, check_errors=False):
    check_square_inexact("linalg.cholesky", self, kernel="cholesky_cpu")
    array = self._impl.array
    factor, info = _cholesky(adjoint(array) if upper else array)
    if check_errors:
        raise_first("linalg.cholesky", info, _not_positive)
    return by_columns(adjoint(factor) if upper else factor, self.dtype), contiguous(info, int32)


def _not_positive(order: int) -> str:
    return (
        "The factorization could not be completed because the input is not positive-definite "
        f"(the leading minor of order {order} is not positive-definite)."
    )


def _cholesky(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lower factors, and LAPACK's status of each matrix; read only lower triangles."""
    try:
        factors = np.linalg.cholesky(array)
        if not np.isnan(factors).any():
            return factors, zeros_of(array.shape[:-2])
    except np.linalg.LinAlgError:
        pass
    factors, info = np.empty_like(array, order="C"), zeros_of(array.shape[:-2])
    for index, matrix in enumerate(stacked(array)):
        stacked(factors)[index], info.reshape(-1)[index] = quietly(cholesky_status, matrix)
    return factors, info


def factorize(array: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return packed LU factors, 1-based pivots, and LAPACK's status, of a batch of matrices."""
    batch, inner = array.shape[:-2], min(array.shape[-2:])
    factors, pivots, info = np.array(array, order="C"), np.empty((*batch, inner), np.int32), zeros_of(batch)
    if factors.size:
        positions, status = quietly(lu_factor, stacked(factors))
        pivots[...], info[...] = positions.reshape(pivots.shape) + 1, status.reshape(info.shape)
    return factors, pivots, info


@cpu("linalg_lu_factor_ex")
def lu_factor_ex(A, *, pivot=True, check_errors=False):
    check_lu_factor(A, pivot)
    factors, pivots, info = factorize(A._impl.array)
    if check_errors and info.any():
        _raise_zero_pivot(info)
    return by_columns(factors, A.dtype), contiguous(pivots, int32), contiguous(info, int32)


def _raise_zero_pivot(info: np.ndarray) -> None:
    index = int(np.flatnonzero(info)[0])
    where = f"(Batch element {index}): " if info.ndim else ""
    order = int(info.flat[index])
    raise RuntimeError(
        f"torch.linalg.lu_factor: {where}U[{order},{order}] is zero and using it on lu_solve would result in a division by "
        "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
        "linalg.lu_factor_ex(A, pivot)"
    )


def permutation_of(pivots: np.ndarray, size: int) -> np.ndarray:
    """Return the row order (*, size) that the 1-based row exchanges (*, k) produce."""
    order = np.broadcast_to(np.arange(size), (*pivots.shape[:-1], size)).copy()
    flat_order, flat_pivots = stacked(order, 1), stacked(pivots, 1)
    if flat_pivots.size and not (1 <= flat_pivots.min() and flat_pivots.max() <= size):
        raise RuntimeError(
            f"lu_unpack: pivots must all be greater or equal to 1 and at most {size}, but they lie between {flat_pivots.min()} "
            f"and {flat_pivots.max()}. Did you pass those of torch.linalg.lu_factor?"
        )
    rows = np.arange(len(flat_order))
    for step in range(pivots.shape[-1]):
        target = flat_pivots[:, step] - 1
        kept = flat_order[:, step].copy()
        flat_order[:, step] = flat_order[rows, target]
        flat_order[rows, target] = kept
    return order


@cpu("lu_unpack")
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    *_, m, n = check_lu_unpack(LU_data, LU_pivots, unpack_pivots)
    kind, array, k = LU_data.dtype, LU_data._impl.array, min(m, n)
    nothing = np.empty((0,), array.dtype)
    matrix = nothing
    if unpack_pivots:
        # A = P L U: column i of P has its 1 in the row that was moved to place i.
        matrix = np.swapaxes(np.eye(m, dtype=array.dtype)[permutation_of(LU_pivots._impl.array, m)], -1, -2)
    if not unpack_data:
        return contiguous(matrix, kind), contiguous(nothing, kind), contiguous(nothing.copy(), kind)
    lower = np.tril(array[..., :k], -1) + np.eye(m, k, dtype=array.dtype)
    return contiguous(matrix, kind), contiguous(lower, kind), contiguous(np.triu(array[..., :k, :]), kind)


@cpu("linalg_ldl_factor_ex")
def ldl_factor_ex(self, *, hermitian=False, check_errors=False):
    check_square_inexact("torch.linalg.ldl_factor_ex", self)
    array = self._impl.array
    factors, pivots, info = np.tril(array), np.empty(array.shape[:-1], np.int32), zeros_of(array.shape[:-2])
    factor = lapack("hetrf" if hermitian and array.dtype.kind == "c" else "sytrf", array.dtype)
    if factors.size:
        for index, matrix in enumerate(stacked(factors)):
            packed, stacked(pivots, 1)[index], info.reshape(-1)[index] = factor(matrix, lower=1)
            matrix[...] = np.tril(packed)
    if check_errors:
        raise_first("torch.linalg.ldl_factor_ex", info, lambda order: f"D[{order},{order}] is exactly zero")
    return by_columns(factors, self.dtype), contiguous(pivots, int32), contiguous(info, int32)


@cpu("linalg_qr")
def qr(A, mode="reduced"):
    q_sizes, r_sizes = qr_sizes(A, mode)
    array = A._impl.array
    if not array.size:
        *batch, m, inner = q_sizes if mode != "r" else (0,) * 2
        identity = np.broadcast_to(np.eye(m, inner, dtype=array.dtype), q_sizes) if mode != "r" else np.empty(q_sizes)
        return by_columns(identity, A.dtype), by_columns(np.zeros(r_sizes, array.dtype), A.dtype)
    if mode == "r":
        return contiguous(np.empty(q_sizes), A.dtype), by_columns(np.linalg.qr(array, mode="r"), A.dtype)
    q, r = np.linalg.qr(array, mode=mode)
    return by_columns(q, A.dtype), by_columns(r, A.dtype)


@cpu("geqrf")
def geqrf(self):
    sizes = check_matrices("torch.geqrf", self, "input")
    check_inexact("torch.geqrf", self)
    factors = np.array(self._impl.array, order="C")
    scales = np.zeros((*sizes[:-2], min(sizes[-2:])), factors.dtype)
    if factors.size:
        for index, matrix in enumerate(stacked(factors)):
            matrix[...], stacked(scales, 1)[index] = householder(matrix)
    return by_columns(factors, self.dtype), contiguous(scales, self.dtype)


@cpu("linalg_householder_product")
def householder_product(input, tau):
    check_householder(input, tau)
    return _orthogonal(input, tau)


def _orthogonal(input: Tensor, tau: Tensor) -> Tensor:
    array = input._impl.array
    result = np.array(array, order="C")
    if not tau.numel():
        result[...] = np.eye(*array.shape[-2:], dtype=array.dtype)
    elif result.size:
        scales = stacked(tau._impl.array, 1)
        for index, matrix in enumerate(stacked(result)):
            matrix[...] = orthogonal(matrix, scales[index])
    return by_columns(result, input.dtype)
