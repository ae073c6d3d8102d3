"""Checks and Meta rules of matrix factorizations and eigenvalue problems."""

from __future__ import annotations

from rushlight.core.dtype import int32
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty
from rushlight.ops.meta.linalg_checks import check_inexact, check_matrices, check_square_inexact, empty_matrices
from rushlight.ops.registry import meta


def check_lu_factor(A: Tensor, pivot: bool) -> tuple[int, ...]:
    """Return the sizes of matrices to be factorized; RuntimeError without pivoting, which the CPU does not support."""
    sizes = check_matrices("torch.lu_factor", A)
    check_inexact("torch.lu_factor", A, kernel="lu_cpu")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return sizes


def check_lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_pivots: bool) -> tuple[int, ...]:
    """Return the sizes of packed factors; RuntimeError where the pivots do not fit them."""
    sizes = check_matrices("torch.lu_unpack", LU_data, "LU_data")
    if unpack_pivots:
        if LU_pivots.dtype is not int32:
            raise RuntimeError(
                "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
            )
        if tuple(LU_pivots.shape) != (*sizes[:-2], min(sizes[-2:])):
            raise RuntimeError(
                f"torch.lu_unpack: expected LU_pivots of shape {[*sizes[:-2], min(sizes[-2:])]}, but got "
                f"{list(LU_pivots.shape)}"
            )
    return sizes


def check_qr_mode(mode: str) -> tuple[bool, bool]:
    """Return (whether to compute Q, whether reduced) for a mode of `linalg_qr`; RuntimeError for unknown modes."""
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return mode != "r", mode != "complete"


def qr_sizes(A: Tensor, mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes of Q and R."""
    sizes = check_matrices("linalg.qr", A)
    check_inexact("linalg.qr", A, kernel="geqrf_cpu")
    wants_q, reduced = check_qr_mode(mode)
    *batch, m, n = sizes
    inner = min(m, n) if reduced else m
    return ((*batch, m, inner) if wants_q else (0,)), (*batch, inner, n)


def check_householder(input: Tensor, tau: Tensor) -> tuple[int, ...]:
    """Return the sizes of the product of reflectors; RuntimeError where the scales do not fit."""
    name = "torch.linalg.householder_product"
    a, scales = input._impl.sizes, tau._impl.sizes
    if len(a) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if a[-2] < a[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if len(scales) != len(a) - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {len(scales)} and "
            f"input.ndim is equal to {len(a)}"
        )
    if a[-1] < scales[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if a[:-2] != scales[:-1]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(scales)}")
    if input.dtype is not tau.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.scalar_name} does not match input dtype {input.dtype.scalar_name}"
        )
    check_inexact(name, input)
    return a


def check_uplo(UPLO: str) -> bool:
    """Return whether UPLO names the lower triangle; RuntimeError unless it is "L" or "U"."""
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "L"


def svd_sizes(A: Tensor, full_matrices: bool, compute_uv: bool, driver: str | None) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of U, S and Vh; RuntimeError for a driver, which only other devices have."""
    *batch, m, n = check_matrices("linalg.svd", A)
    check_inexact("linalg.svd", A, kernel="linalg_svd_cpu")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    k = min(m, n)
    if not compute_uv:
        return (0,), (*batch, k), (0,)
    return (*batch, m, m if full_matrices else k), (*batch, k), (*batch, n if full_matrices else k, n)


@meta("linalg_cholesky_ex")
def cholesky_ex(self, *, upper=False, check_errors=False):
    sizes = check_square_inexact("linalg.cholesky", self, kernel="cholesky_cpu")
    return empty_matrices(sizes, self.dtype), empty(sizes[:-2], int32)


@meta("linalg_lu_factor_ex")
def lu_factor_ex(A, *, pivot=True, check_errors=False):
    sizes = check_lu_factor(A, pivot)
    pivots = empty((*sizes[:-2], min(sizes[-2:])), int32)
    return empty_matrices(sizes, A.dtype), pivots, empty(sizes[:-2], int32)


@meta("lu_unpack")
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    *batch, m, n = check_lu_unpack(LU_data, LU_pivots, unpack_pivots)
    k, kind = min(m, n), LU_data.dtype
    permutation = empty((*batch, m, m) if unpack_pivots else (0,), kind)
    if not unpack_data:
        return permutation, empty((0,), kind), empty((0,), kind)
    return permutation, empty((*batch, m, k), kind), empty((*batch, k, n), kind)


@meta("linalg_ldl_factor_ex")
def ldl_factor_ex(self, *, hermitian=False, check_errors=False):
    sizes = check_square_inexact("torch.linalg.ldl_factor_ex", self)
    return empty_matrices(sizes, self.dtype), empty(sizes[:-1], int32), empty(sizes[:-2], int32)


@meta("linalg_qr")
def qr(A, mode="reduced"):
    q, r = qr_sizes(A, mode)
    return empty_matrices(q, A.dtype), empty_matrices(r, A.dtype)


@meta("geqrf")
def geqrf(self):
    sizes = check_matrices("torch.geqrf", self, "input")
    check_inexact("torch.geqrf", self)
    return empty_matrices(sizes, self.dtype), empty((*sizes[:-2], min(sizes[-2:])), self.dtype)


@meta("linalg_householder_product")
def householder_product(input, tau):
    return empty_matrices(check_householder(input, tau), input.dtype)


@meta("_linalg_eigh")
def eigh(A, UPLO="L", compute_v=True):
    sizes = check_square_inexact("linalg.eigh", A, kernel="linalg_eigh_cpu")
    check_uplo(UPLO)
    return empty(sizes[:-1], A.dtype.to_real()), empty_matrices(sizes if compute_v else (0,), A.dtype)


@meta("linalg_eig")
def eig(self):
    sizes = check_square_inexact("linalg.eig", self, kernel="linalg_eig_out_cpu")
    kind = self.dtype.to_complex()
    return empty(sizes[:-1], kind), empty_matrices(sizes, kind)


@meta("_linalg_eigvals")
def eigvals(self):
    return empty(check_square_inexact("linalg.eigvals", self, kernel="linalg_eig_out_cpu")[:-1], self.dtype.to_complex())


@meta("_linalg_svd")
def svd(A, full_matrices=False, compute_uv=True, *, driver=None):
    u, s, vh = svd_sizes(A, full_matrices, compute_uv, driver)
    return empty_matrices(u, A.dtype), empty(s, A.dtype.to_real()), empty_matrices(vh, A.dtype)
