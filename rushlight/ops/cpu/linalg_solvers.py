"""CPU kernels of linear solvers, inverses, determinants and the matrix exponential."""

from __future__ import annotations

from functools import partial

import numpy as np

from rushlight.core.dtype import int32, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.linalg_lapack import (
    adjoint,
    by_columns,
    converging,
    diverged,
    lapack,
    raise_first,
    stacked,
    svd,
    zeros_of,
)
from rushlight.ops.cpu.linalg_plain import divide, exponential, least_squares, lu_factor, solve_full_rank
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.linalg_errors import LinAlgError
from rushlight.ops.meta.linalg_checks import check_inexact, check_square, check_square_inexact, is_vector_rhs, solution_sizes
from rushlight.ops.meta.linalg_solvers import (
    check_ldl_solve,
    check_lstsq,
    check_pinv,
    cholesky_solve_sizes,
    triangular_sizes,
)
from rushlight.ops.registry import cpu


@cpu("linalg_solve_ex")
def solve_ex(A, B, *, left=True, check_errors=False):
    sizes = solution_sizes("linalg.solve", A, B, left)
    a, b = A._impl.array, B._impl.array
    vector = is_vector_rhs(a.shape, b.shape)
    right = b[..., None] if vector else b
    if not left:
        a, right = np.swapaxes(a, -1, -2), np.swapaxes(right, -1, -2)
    solution, info = _solve(a, right)
    if check_errors:
        raise_first("torch.linalg.solve", info, lambda order: "The solver failed because the input matrix is singular.")
    if not left:
        return contiguous(np.swapaxes(solution, -1, -2), A.dtype), contiguous(info, int32)
    return by_columns(solution.reshape(sizes), A.dtype), contiguous(info, int32)


def _solve(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return solutions of a batch of systems, and LAPACK's status of each matrix; solutions of singular systems are NaN."""
    info = zeros_of(a.shape[:-2])
    try:
        return quietly(np.linalg.solve, a, b), info
    except np.linalg.LinAlgError:
        pass
    info[...] = quietly(lu_factor, np.array(stacked(a)))[1].reshape(info.shape)
    singular = (info != 0)[..., None, None]
    solution = quietly(np.linalg.solve, np.where(singular, np.eye(a.shape[-1], dtype=a.dtype), a), b)
    return np.where(singular, np.nan, solution), info


@cpu("linalg_inv_ex")
def inv_ex(A, *, check_errors=False):
    check_square_inexact("linalg.inv", A)
    array = A._impl.array
    eye = np.eye(array.shape[-1], dtype=array.dtype)
    try:
        inverse, info = quietly(np.linalg.inv, array), zeros_of(array.shape[:-2])
    except np.linalg.LinAlgError:
        inverse, info = _solve(array, eye)
    if check_errors:
        raise_first("linalg.inv", info, _not_invertible)
    return by_columns(inverse, A.dtype), contiguous(info, int32)


def _not_invertible(order: int) -> str:
    return (
        f"The diagonal element {order} is zero, the inversion could not be completed because the input matrix is singular."
    )


def _divide(a: np.ndarray, b: np.ndarray, *, upper: bool, left: bool = True, unitriangular: bool = False) -> np.ndarray:
    """Return solutions of triangular systems whose operands have the same batch sizes. A zero on the diagonal gives
    infinities."""
    result = np.array(b, order="C")
    if result.size and left:
        quietly(partial(divide, a, result, upper=upper, unit=unitriangular))
    elif result.size:  # solve x a = b as a' x' = b'
        quietly(partial(divide, np.swapaxes(a, -1, -2), np.swapaxes(result, -1, -2), upper=not upper, unit=unitriangular))
    return result


@cpu("linalg_solve_triangular")
def solve_triangular(self, B, *, upper, left=True, unitriangular=False):
    a_sizes, b_sizes = triangular_sizes(self, B, left)
    a, b = np.broadcast_to(self._impl.array, a_sizes), np.broadcast_to(B._impl.array, b_sizes)
    return by_columns(_divide(a, b, upper=upper, left=left, unitriangular=unitriangular), B.dtype)


@cpu("cholesky_solve")
def cholesky_solve(self, input2, upper=False):
    factor_sizes, sizes = cholesky_solve_sizes(self, input2)
    factor = np.broadcast_to(input2._impl.array, factor_sizes)
    lower = adjoint(factor) if upper else factor
    inner = _divide(lower, np.broadcast_to(self._impl.array, sizes), upper=False)
    return by_columns(_divide(adjoint(lower), inner, upper=True), self.dtype)


def _check_exchanges(pivots: np.ndarray) -> None:
    """Raise RuntimeError unless pivots are valid: rows from 1 on, or pairs of equal negative ones."""
    count = pivots.shape[-1]
    for row in pivots.reshape(-1, count):
        position = 0
        while position < count:
            step = 1 if row[position] > 0 else 2
            is_unpaired = step == 2 and (position + 1 == count or row[position + 1] != row[position])
            if not 1 <= abs(row[position]) <= count or is_unpaired:
                raise RuntimeError(
                    f"torch.linalg.ldl_solve: pivots must be row numbers from 1 to {count}, negative ones in equal pairs, but "
                    f"got {row.tolist()}. Did you pass those of torch.linalg.ldl_factor?"
                )
            position += step


@cpu("linalg_ldl_solve")
def ldl_solve(LD, pivots, B, *, hermitian=False):
    sizes = check_ldl_solve(LD, pivots, B)
    kind = B.dtype.numpy
    factors = stacked(np.broadcast_to(LD._impl.array, (*sizes[:-2], *LD.shape[-2:])))
    positions = stacked(np.broadcast_to(pivots._impl.array, (*sizes[:-2], LD.size(-1))), 1)
    result = np.array(np.broadcast_to(B._impl.array, sizes), order="C")
    if result.size:
        _check_exchanges(positions)
        solve = lapack("hetrs" if hermitian and kind.kind == "c" else "sytrs", kind)
        for index, matrix in enumerate(stacked(result)):
            matrix[...] = solve(factors[index], positions[index], matrix, lower=1)[0]
    return by_columns(result, B.dtype)


@cpu("linalg_lstsq")
def lstsq(self, b, rcond=None, *, driver=None):
    shape, vector = check_lstsq(self, b, driver)
    a, driver = self._impl.array, driver or "gelsy"
    m, n = a.shape[-2:]
    batch = np.broadcast_shapes(a.shape[:-2], shape[:-2])
    right = np.broadcast_to(b._impl.array.reshape(shape), (*batch, *shape[-2:]))
    real = self.dtype.to_real()
    limit = rcond if rcond is not None else float(np.finfo(real.numpy).eps) * max(m, n)
    solution = np.zeros((*batch, n, shape[-1]), a.dtype)
    rank, values = np.zeros(batch, np.int64), np.zeros((*batch, min(m, n)), real.numpy)
    if a.size:
        flat = stacked(np.broadcast_to(a, (*batch, m, n)))
        for index, matrix in enumerate(stacked(solution)):
            matrix[...], rank.reshape(-1)[index], singular = _least_squares(flat[index], stacked(right)[index], limit, driver)
            stacked(values, 1)[index] = 0 if singular is None else singular
    nothing = np.empty((0,))
    residuals = nothing
    if m > n and driver != "gelsy" and (rank == n).all():
        residuals = (np.abs(np.matmul(a, solution) - right) ** 2).sum(-2)
    return (
        contiguous(solution[..., 0], self.dtype) if vector else by_columns(solution, self.dtype),
        contiguous(residuals, real),
        contiguous(nothing if driver == "gels" else rank, int64),
        contiguous(values if driver in ("gelsd", "gelss") else nothing, real),
    )


def _least_squares(a: np.ndarray, b: np.ndarray, limit: float, driver: str) -> tuple[np.ndarray, int, np.ndarray | None]:
    """Return the solution of one system, its rank, and its singular values where the driver computes them."""
    if not np.isfinite(a).all():
        raise diverged("linalg.lstsq")
    if driver != "gels":
        solution, rank, values = converging("linalg.lstsq", least_squares, a, b, limit)
        return solution, rank, None if driver == "gelsy" else values
    solution, info = quietly(solve_full_rank, a, b)
    if info > 0:
        raise LinAlgError(
            "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not have "
            f"full rank (error code: {info})."
        )
    return solution, min(a.shape), None


@cpu("linalg_pinv.atol_rtol_tensor")
def pinv(self, *, atol=None, rtol=None, hermitian=False):
    sizes = check_pinv(self, atol, rtol, hermitian)
    array = self._impl.array
    if not array.size:
        return contiguous(np.zeros(sizes, array.dtype), self.dtype)
    if hermitian:
        values, vectors = converging("linalg.pinv", np.linalg.eigh, array, "L")
        left, right = vectors, adjoint(vectors)
    else:
        left, values, right = svd(array, False)
    least = _cutoff(np.abs(values).max(-1), array.shape, atol, rtol)[..., None]
    inverse = np.where(np.abs(values) > least, 1 / np.where(values == 0, 1, values), 0).astype(values.dtype)
    return contiguous(np.matmul(adjoint(right) * inverse[..., None, :], adjoint(left)), self.dtype)


def _cutoff(largest: np.ndarray, sizes: tuple[int, ...], atol: Tensor | None, rtol: Tensor | None) -> np.ndarray:
    """Return the bound below which singular values count as 0: max(atol, rtol * largest)."""
    absolute = 0.0 if atol is None else atol._impl.array
    if rtol is None:
        relative = max(sizes[-2:]) * float(np.finfo(largest.dtype).eps)
        relative = relative if atol is None else np.where(absolute > 0, 0.0, relative)
    else:
        relative = rtol._impl.array
    return np.maximum(absolute, relative * largest)


@cpu("linalg_det")
def det(A):
    check_square_inexact("linalg.det", A, kernel="lu_cpu")
    return contiguous(quietly(np.linalg.det, A._impl.array), A.dtype)


@cpu("linalg_slogdet")
def slogdet(A):
    check_square_inexact("linalg.slogdet", A)
    sign, size = quietly(np.linalg.slogdet, A._impl.array)
    return contiguous(sign, A.dtype), contiguous(size, A.dtype.to_real())


@cpu("linalg_matrix_exp")
def matrix_exp(self):
    check_square("linalg.matrix_exp", self)
    check_inexact("matrix_exp", self)
    array = self._impl.array
    if not array.size:
        return contiguous(array.copy(), self.dtype)
    finite = np.isfinite(array).all((-1, -2), keepdims=True)
    wide = np.result_type(array.dtype, np.float64)  # double precision, because squaring doubles rounding errors
    result = quietly(exponential, np.where(finite, array, 0).astype(wide))
    return contiguous(np.where(finite, result, np.nan).astype(array.dtype), self.dtype)
