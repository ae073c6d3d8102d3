"""Composite factorizations and spectra: the forms without a status, older names, products with reflectors."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops.composite.linalg_common import adjoint, aten
from rushlight.ops.meta.linalg_checks import check_matrices
from rushlight.ops.registry import composite


@composite("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor")
def linalg_cholesky(self, *, upper=False):
    return aten.linalg_cholesky_ex.default(self, upper=upper, check_errors=True)[0]


@composite("cholesky(Tensor self, bool upper=False) -> Tensor")
def cholesky(self, upper=False):
    return linalg_cholesky(self, upper=upper)


@composite("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)")
def linalg_lu_factor(A, *, pivot=True):
    return aten.linalg_lu_factor_ex.default(A, pivot=pivot, check_errors=True)[:2]


@composite("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)")
def lu_with_info(self, pivot=True, check_errors=True):
    # Singular matrices are no error here: their factors exist.
    return aten.linalg_lu_factor_ex.default(self, pivot=pivot)


@composite("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)")
def linalg_lu(A, *, pivot=True):
    factors, pivots, _ = aten.linalg_lu_factor_ex.default(A, pivot=pivot)
    return aten.lu_unpack.default(factors, pivots)


@composite("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)")
def linalg_ldl_factor(self, *, hermitian=False):
    return aten.linalg_ldl_factor_ex.default(self, hermitian=hermitian, check_errors=True)[:2]


@composite("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)")
def qr(self, some=True):
    return aten.linalg_qr.default(self, "reduced" if some else "complete")


@composite("orgqr(Tensor self, Tensor input2) -> Tensor")
def orgqr(self, input2):
    return aten.linalg_householder_product.default(self, input2)


@composite("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor")
def ormqr(self, input2, input3, left=True, transpose=False):
    _check_ormqr(self, input2, input3, left)
    rows, count = self.size(-2), input2.size(-1)
    reflectors = aten.constant_pad_nd.default(self[..., :count], [0, rows - count])
    orthogonal = aten.linalg_householder_product.default(reflectors, input2)
    orthogonal = adjoint(orthogonal) if transpose else orthogonal
    return aten.matmul.default(orthogonal, input3) if left else aten.matmul.default(input3, orthogonal)


def _check_ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool) -> None:
    if input.dim() < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if other.dim() < 2:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    if not tau.dim():
        raise RuntimeError("torch.ormqr: tau must have at least 1 dimension.")
    side = -2 if left else -1
    if other.size(side) < tau.size(-1):
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if other.size(side) != input.size(-2):
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.size(-1) != min(other.size(side), input.size(-1)):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if not input.dim() - tau.dim() == 1 or input.dim() != other.dim():
        raise RuntimeError(
            f"torch.ormqr: Expected tau to have one dimension less than input, and other as many as input, but got tau.ndim "
            f"equal to {tau.dim()}, other.ndim equal to {other.dim()} and input.ndim is equal to {input.dim()}"
        )
    if input.shape[:-2] != tau.shape[:-1] or input.shape[:-2] != other.shape[:-2]:
        raise RuntimeError(f"torch.ormqr: Expected batch dimensions of tau and other to be equal to {list(input.shape[:-2])}")
    if not tau.dtype == other.dtype == input.dtype:
        raise RuntimeError(f"torch.ormqr: Expected input, tau and other to have the same dtype, but got {input.dtype}, "
                           f"{tau.dtype} and {other.dtype}")  # fmt: skip


@composite("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)")
def linalg_eigh(self, UPLO="L"):
    return aten._linalg_eigh.default(self, UPLO, True)


@composite("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor")
def linalg_eigvalsh(self, UPLO="L"):
    return aten._linalg_eigh.default(self, UPLO, False)[0]


@composite("linalg_eigvals(Tensor self) -> Tensor")
def linalg_eigvals(self):
    return aten._linalg_eigvals.default(self)


@composite("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
def linalg_svd(A, full_matrices=True, *, driver=None):
    return aten._linalg_svd.default(A, full_matrices, True, driver=driver)


@composite("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor")
def linalg_svdvals(A, *, driver=None):
    return aten._linalg_svd.default(A, False, False, driver=driver)[1]


@composite("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)")
def svd(self, some=True, compute_uv=True):
    if compute_uv:
        left, values, right = aten._linalg_svd.default(self, not some, True)
        return left, values, adjoint(right)
    *batch, m, n = check_matrices("linalg.svd", self)
    values = linalg_svdvals(self)
    return aten.new_zeros.default(self, (*batch, m, m)), values, aten.new_zeros.default(self, (*batch, n, n))
