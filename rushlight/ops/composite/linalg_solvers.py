"""Composite solvers: the forms that raise for singular matrices, solutions from factors, ranks, pseudo-inverses, powers."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_, finfo, float64, int32, int64
from rushlight.core.layout import contiguous_format
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.linalg_common import adjoint, aten, identity
from rushlight.ops.meta.linalg_checks import (
    check_inexact,
    check_matrices,
    check_same_dtype,
    check_sides,
    check_square,
    check_square_inexact,
)
from rushlight.ops.meta.linalg_solvers import check_tolerance
from rushlight.ops.registry import composite


@composite("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
def linalg_solve(A, B, *, left=True):
    return aten.linalg_solve_ex.default(A, B, left=left, check_errors=True)[0]


@composite("linalg_inv(Tensor A) -> Tensor")
def linalg_inv(A):
    return aten.linalg_inv_ex.default(A, check_errors=True)[0]


@composite("inverse(Tensor self) -> Tensor")
def inverse(self):
    return linalg_inv(self)


@composite("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor")
def linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    _check_lu_solve(LU, pivots, B, left)
    if not left:
        return _adjoint(_lu_solve(LU, pivots, _adjoint(B), not adjoint))
    return _lu_solve(LU, pivots, B, adjoint)


_adjoint = adjoint


def _lu_solve(factors: Tensor, pivots: Tensor, right: Tensor, adjoint: bool) -> Tensor:
    """Compute with A = P L U: U^-1 L^-1 P^T B, or for the adjoint of A: P L^-H U^-H B."""
    permutation = aten.lu_unpack.default(factors, pivots, False, True)[0]
    if adjoint:
        turned = _adjoint(factors)
        inner = aten.linalg_solve_triangular.default(turned, right, upper=False)
        inner = aten.linalg_solve_triangular.default(turned, inner, upper=True, unitriangular=True)
        return aten.matmul.default(permutation, inner)
    inner = aten.matmul.default(aten.transpose.int(permutation, -2, -1), right)
    inner = aten.linalg_solve_triangular.default(factors, inner, upper=False, unitriangular=True)
    return aten.linalg_solve_triangular.default(factors, inner, upper=True)


def _check_lu_solve(factors: Tensor, pivots: Tensor, right: Tensor, left: bool) -> None:
    name = "linalg.lu_solve"
    check_inexact(name, factors)
    check_same_dtype(name, factors, right, ("LU", "B"))
    if pivots.dtype is not int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32, but got {pivots.dtype}")
    sizes = check_square(name, factors, "LU")
    check_sides(name, sizes, check_matrices(name, right, "B"), left)
    if tuple(pivots.shape) != sizes[:-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix, but got pivots of shape "
            f"{list(pivots.shape)} for LU of shape {list(sizes)}"
        )


@composite("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor")
def lu_solve(self, LU_data, LU_pivots):
    return linalg_lu_solve(LU_data, LU_pivots, self)


@composite("cholesky_inverse(Tensor self, bool upper=False) -> Tensor")
def cholesky_inverse(self, upper=False):
    size = check_square_inexact("cholesky_inverse", self)[-1]
    return aten.cholesky_solve.default(identity(size, self), self, upper)


@composite(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
    "(Tensor solution, Tensor cloned_coefficient)"
)
def triangular_solve(self, A, upper=True, transpose=False, unitriangular=False):
    for role, tensor in (("b", self), ("A", A)):
        if tensor.dim() < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {role} to have at least 2 dimensions, but it has {tensor.dim()} dimensions "
                "instead"
            )
    matrix = aten.transpose.int(A, -2, -1) if transpose else A
    solution = aten.linalg_solve_triangular.default(matrix, self, upper=upper != transpose, unitriangular=unitriangular)
    return solution, aten.clone.default(aten.expand.default(A, (*solution.shape[:-2], *A.shape[-2:])))


def _as_tolerance(value: float | None) -> Tensor | None:
    return None if value is None else aten.full.default((), value, dtype=float64)


@composite("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor")
def linalg_pinv(self, *, atol=None, rtol=None, hermitian=False):
    return aten.linalg_pinv.atol_rtol_tensor(self, atol=_as_tolerance(atol), rtol=_as_tolerance(rtol), hermitian=hermitian)


@composite("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor")
def linalg_pinv_rcond(self, rcond, hermitian=False):
    return linalg_pinv(self, rtol=rcond, hermitian=hermitian)


@composite("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor")
def linalg_pinv_rcond_tensor(self, rcond, hermitian=False):
    return aten.linalg_pinv.atol_rtol_tensor(self, rtol=rcond, hermitian=hermitian)


@composite("pinverse(Tensor self, float rcond=1e-15) -> Tensor")
def pinverse(self, rcond=1e-15):
    return linalg_pinv_rcond(self, rcond)


@composite(
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> "
    "Tensor"
)
def linalg_matrix_rank(input, *, atol=None, rtol=None, hermitian=False):
    """Return the number of singular values above max(atol, rtol * the largest); rtol is eps * max(m, n) unless atol is
    given."""
    *batch, m, n = check_square("linalg.matrix_rank", input) if hermitian else check_matrices("linalg.matrix_rank", input)
    for role, value in (("atol", atol), ("rtol", rtol)):
        check_tolerance(value if isinstance(value, Tensor) else None, "torch.linalg.matrix_rank", role)
    if not input.numel():
        return aten.zeros.default(batch, dtype=int64, device=input.device)
    values = aten.linalg_eigvalsh.default(input).abs() if hermitian else aten.linalg_svdvals.default(input)
    if rtol is None:
        rtol = finfo(input.dtype).eps * max(m, n)
        if isinstance(atol, Tensor):
            rtol = aten.where.self(atol > 0, 0.0, rtol)
        elif atol:
            rtol = 0.0
    limit = aten.amax.default(values, [-1]) * rtol
    if atol is not None:
        limit = aten.maximum.default(limit, atol) if isinstance(atol, Tensor) else aten.clamp.default(limit, atol)
    return aten.sum.dim_IntList(values > aten.unsqueeze.default(limit, -1), [-1])


@composite(
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor"
)
def linalg_matrix_rank_of_numbers(self, *, atol=None, rtol=None, hermitian=False):
    return linalg_matrix_rank(self, atol=atol, rtol=rtol, hermitian=hermitian)


@composite("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor")
def linalg_matrix_rank_tol(self, tol, hermitian=False):
    return linalg_matrix_rank(self, atol=tol, rtol=0.0, hermitian=hermitian)


@composite("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor")
def linalg_matrix_rank_tol_tensor(input, tol, hermitian=False):
    return linalg_matrix_rank(input, atol=tol, rtol=0.0, hermitian=hermitian)


@composite("det(Tensor self) -> Tensor")
def det(self):
    return aten.linalg_det.default(self)


@composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)")
def slogdet(self):
    return aten.linalg_slogdet.default(self)


@composite("logdet(Tensor self) -> Tensor")
def logdet(self):
    sign, size = aten.linalg_slogdet.default(self)
    return size + aten.log.default(sign) if sign.is_complex() else aten.where.self(sign == -1, math.nan, size)


@composite("matrix_exp(Tensor self) -> Tensor")
def matrix_exp(self):
    return aten.linalg_matrix_exp.default(self)


@composite("linalg_matrix_power(Tensor self, int n) -> Tensor", "matrix_power(Tensor self, int n) -> Tensor")
def linalg_matrix_power(self, n):
    sizes = check_square("linalg.matrix_power", self)
    if n < 0:
        return linalg_matrix_power(linalg_inv(self), -n)
    if n == 0:
        # Return the identity as a function of `self`, so that it has a gradient, which is 0.
        made = aten.where.self(aten.ones_like.default(self, dtype=bool_), identity(sizes[-1], self), self)
        return aten.contiguous.default(made)
    result, square = None, self
    while True:
        if n & 1:
            result = square if result is None else aten.matmul.default(result, square)
        n >>= 1
        if not n:
            return aten.clone.default(result, memory_format=contiguous_format) if result is self else result
        square = aten.matmul.default(square, square)


@composite("linalg_tensorinv(Tensor self, int ind=2) -> Tensor")
def linalg_tensorinv(self, ind=2):
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    if ind > self.dim():
        raise RuntimeError(f"tensorinv: ind = {ind} is more than the {self.dim()} dimensions of the tensor")
    first, rest = self.shape[:ind], self.shape[ind:]
    rows, columns = math.prod(first), math.prod(rest)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    return aten.reshape.default(linalg_inv(aten.reshape.default(self, (rows, columns))), (*rest, *first))


@composite("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor")
def linalg_tensorsolve(self, other, dims=None):
    moved = self
    if dims is not None:
        moved = aten.movedim.intlist(self, dims, list(range(self.dim() - len(dims), self.dim())))
    first, rest = moved.shape[: other.dim()], moved.shape[other.dim() :]
    rows, columns = math.prod(first), math.prod(rest)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{columns} != {rows}"
        )
    matrix, right = aten.reshape.default(moved, (rows, columns)), aten.reshape.default(other, (-1,))
    return aten.reshape.default(linalg_solve(matrix, right), rest)
