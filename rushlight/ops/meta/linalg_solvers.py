"""Checks and Meta rules of linear solvers, inverses and determinants."""

from __future__ import annotations

from rushlight.core.dtype import int32, int64
from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty, like
from rushlight.ops.meta.linalg_checks import (
    check_inexact,
    check_matrices,
    check_same_dtype,
    check_sides,
    check_square,
    check_square_inexact,
    empty_matrices,
    solution_sizes,
)
from rushlight.ops.registry import meta

LEAST_SQUARES_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def triangular_sizes(
    A: Tensor, B: Tensor, left: bool, name: str = "linalg.solve_triangular"
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes to which both operands of a triangular system are broadcast; RuntimeError where they do not fit."""
    check_inexact(name, A)
    check_same_dtype(name, A, B)
    a = check_square(name, A)
    b = check_matrices(name, B, "B")
    check_sides(name, a, b, left)
    batch = broadcast_shapes(a[:-2], b[:-2])
    return (*batch, *a[-2:]), (*batch, *b[-2:])


def cholesky_solve_sizes(self: Tensor, input2: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes to which the factor and the right-hand side are broadcast; RuntimeError where they do not fit."""
    for role, tensor in (("b", self), ("u", input2)):
        if tensor.dim() < 2:
            raise RuntimeError(f"{role} should have at least 2 dimensions, but has {tensor.dim()} dimensions instead")
    return triangular_sizes(input2, self, True, "cholesky_solve")


def check_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor) -> tuple[int, ...]:
    """Return the sizes of the solution; RuntimeError where factors, pivots and right-hand side do not fit."""
    name = "torch.linalg.ldl_solve"
    factors = check_square_inexact(name, LD)
    check_same_dtype(name, LD, B, ("LD", "B"))
    if pivots.dtype not in (int32, int64):
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype.scalar_name}")
    if tuple(pivots.shape) != factors[:-1]:
        raise RuntimeError(f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
                           f"{list(pivots.shape)} instead")  # fmt: skip
    right = check_matrices(name, B, "B")
    check_sides(name, factors, right, True)
    return (*broadcast_shapes(factors[:-2], right[:-2]), *right[-2:])


def check_lstsq(self: Tensor, b: Tensor, driver: str | None) -> tuple[tuple[int, ...], bool]:
    """Return (sizes of the right-hand sides as matrices, whether they were given as vectors); RuntimeError where they do not
    fit."""
    name = "torch.linalg.lstsq"
    sizes, right = self._impl.sizes, b._impl.sizes
    if len(sizes) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if not right:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    check_inexact("linalg.lstsq", self)
    if driver is not None and driver not in LEAST_SQUARES_DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of ({', '.join(LEAST_SQUARES_DRIVERS)})")
    vector = len(right) == 1 or (len(right) == len(sizes) - 1 and right == sizes[:-1])
    shape = (*right, 1) if vector else right
    if shape[-2] != sizes[-2]:
        dim = -1 if vector else -2
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({dim})")
    if self.dtype is not b.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got input's dtype "
                           f"{self.dtype.scalar_name} and other's dtype {b.dtype.scalar_name}")  # fmt: skip
    return shape, vector


def check_tolerance(tolerance: Tensor | None, name: str, role: str) -> None:
    """Raise RuntimeError for a complex tolerance."""
    if tolerance is not None and tolerance.dtype.is_complex:
        raise RuntimeError(f"{name}: {role} tensor of complex type is not supported. Got {tolerance.dtype.scalar_name}")


def check_pinv(self: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool) -> tuple[int, ...]:
    """Return the sizes of the pseudo-inverse."""
    sizes = check_square("linalg.pinv", self) if hermitian else check_matrices("linalg.pinv", self)
    check_inexact("linalg.pinv", self)
    check_tolerance(atol, "torch.linalg.pinv", "atol")
    check_tolerance(rtol, "torch.linalg.pinv", "rtol")
    for tolerance in (atol, rtol):
        if tolerance is not None and broadcast_shapes(tolerance._impl.sizes, sizes[:-2]) != sizes[:-2]:
            raise RuntimeError(
                f"torch.linalg.pinv: expected a tolerance for each of the matrices {list(sizes[:-2])}, "
                f"but got tolerances of shape {list(tolerance.shape)}"
            )
    return (*sizes[:-2], sizes[-1], sizes[-2])


@meta("linalg_solve_ex")
def solve_ex(A, B, *, left=True, check_errors=False):
    sizes = solution_sizes("linalg.solve", A, B, left)
    return (empty_matrices if left else empty)(sizes, A.dtype), empty(A._impl.sizes[:-2], int32)


@meta("linalg_solve_triangular")
def solve_triangular(self, B, *, upper, left=True, unitriangular=False):
    return empty_matrices(triangular_sizes(self, B, left)[1], self.dtype)


@meta("cholesky_solve")
def cholesky_solve(self, input2, upper=False):
    return empty_matrices(cholesky_solve_sizes(self, input2)[1], self.dtype)


@meta("linalg_ldl_solve")
def ldl_solve(LD, pivots, B, *, hermitian=False):
    return empty_matrices(check_ldl_solve(LD, pivots, B), B.dtype)


@meta("linalg_lstsq")
def lstsq(self, b, rcond=None, *, driver=None):
    shape, vector = check_lstsq(self, b, driver)
    *_, m, n = self._impl.sizes
    batch = broadcast_shapes(self._impl.sizes[:-2], shape[:-2])
    driver = driver or "gelsy"
    solution = (*batch, n) if vector else (*batch, n, shape[-1])
    # Whether all matrices have full rank depends on values; the residuals of gels never do.
    residuals = (*batch, shape[-1]) if m > n and driver == "gels" else (0,)
    values = (*self._impl.sizes[:-2], min(m, n)) if driver in ("gelsd", "gelss") else (0,)
    rank = (0,) if driver == "gels" else self._impl.sizes[:-2]
    real = self.dtype.to_real()
    made = (empty if vector else empty_matrices)(solution, self.dtype)
    return made, empty(residuals, real), empty(rank, int64), empty(values, real)


@meta("linalg_inv_ex")
def inv_ex(A, *, check_errors=False):
    sizes = check_square_inexact("linalg.inv", A)
    return empty_matrices(sizes, A.dtype), empty(sizes[:-2], int32)


@meta("linalg_pinv.atol_rtol_tensor")
def pinv(self, *, atol=None, rtol=None, hermitian=False):
    return empty(check_pinv(self, atol, rtol, hermitian), self.dtype)


@meta("linalg_det")
def det(A):
    return empty(check_square_inexact("linalg.det", A, kernel="lu_cpu")[:-2], A.dtype)


@meta("linalg_slogdet")
def slogdet(A):
    batch = check_square_inexact("linalg.slogdet", A)[:-2]
    return empty(batch, A.dtype), empty(batch, A.dtype.to_real())


@meta("linalg_matrix_exp")
def matrix_exp(self):
    check_square("linalg.matrix_exp", self)
    check_inexact("matrix_exp", self)
    return like(self)
