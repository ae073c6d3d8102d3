"""CPU kernels of eigenvalues and singular values, on NumPy's batched LAPACK calls."""

from __future__ import annotations

import numpy as np

from rushlight.core.lazy_module import optional
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.linalg_lapack import by_columns, converging, stacked
from rushlight.ops.cpu.linalg_lapack import svd as lapack_svd
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.linalg_checks import check_square_inexact
from rushlight.ops.meta.linalg_factorizations import check_uplo, svd_sizes
from rushlight.ops.registry import cpu


@cpu("_linalg_eigh")
def eigh(A, UPLO="L", compute_v=True):
    check_square_inexact("linalg.eigh", A, kernel="linalg_eigh_cpu")
    triangle = "L" if check_uplo(UPLO) else "U"
    if not compute_v:
        values = converging("linalg.eigh", np.linalg.eigvalsh, A._impl.array, triangle)
        return contiguous(values, A.dtype.to_real()), contiguous(np.empty((0,)), A.dtype)
    values, vectors = converging("linalg.eigh", np.linalg.eigh, A._impl.array, triangle)
    return contiguous(values, A.dtype.to_real()), by_columns(vectors, A.dtype)


def _finite(name: str, self: Tensor) -> np.ndarray:
    check_square_inexact(name, self, kernel="linalg_eig_out_cpu")
    array = self._impl.array
    if not np.isfinite(array).all():
        raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")
    return array


@cpu("linalg_eig")
def eig(self):
    array, kind = _finite("linalg.eig", self), self.dtype.to_complex()
    scipy = optional("scipy.linalg")
    if scipy is None or not array.size:
        values, vectors = converging("linalg.eig", np.linalg.eig, array)
        return contiguous(values, kind), by_columns(vectors, kind)
    values, vectors = np.empty(array.shape[:-1], kind.numpy), np.empty(array.shape, kind.numpy)
    # SciPy's LAPACK usually chooses the same signs of vectors as torch's; NumPy's usually does not.
    for index, matrix in enumerate(stacked(array)):
        stacked(values, 1)[index], stacked(vectors)[index] = converging("linalg.eig", scipy.eig, matrix)
    return contiguous(values, kind), by_columns(vectors, kind)


@cpu("_linalg_eigvals")
def eigvals(self):
    values = converging("linalg.eigvals", np.linalg.eigvals, _finite("linalg.eigvals", self))
    return contiguous(values, self.dtype.to_complex())


@cpu("_linalg_svd")
def svd(A, full_matrices=False, compute_uv=True, *, driver=None):
    svd_sizes(A, full_matrices, compute_uv, driver)
    array = A._impl.array
    real = A.dtype.to_real()
    if not compute_uv:
        values = lapack_svd(array, False, vectors=False)
        return contiguous(np.empty((0,)), A.dtype), contiguous(values, real), contiguous(np.empty((0,)), A.dtype)
    left, values, right = lapack_svd(array, full_matrices)
    return by_columns(left, A.dtype), contiguous(values, real), by_columns(right, A.dtype)
