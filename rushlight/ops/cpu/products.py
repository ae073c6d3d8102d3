"""CPU kernels of matrix products: native for float32, NumPy's BLAS for the rest."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import dtype, float32
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import empty, make, operand
from rushlight.ops.meta.products import check_addmm, check_bmm, check_mm
from rushlight.ops.registry import cpu

# A product reads its rows again for every panel of columns. If rows are stored by columns (each element on another cache line)
# and exceed the first-level cache, they are copied row by row first, provided that there are enough panels for that to pay.
_CACHED_ROWS = 1 << 13
_COLUMNS = 128


def _by_rows(a: np.ndarray, columns: int) -> np.ndarray:
    is_large = a.ndim == 2 and a.size > _CACHED_ROWS and columns >= _COLUMNS
    return native.contiguous(a) if is_large and a.strides[0] == a.itemsize else a


def _native(
    sizes: tuple[int, ...], kind: dtype, a: np.ndarray, b: np.ndarray, addend: np.ndarray | None, alpha: float, beta: float
) -> Tensor | None:
    """Compute alpha * a @ b + beta * addend in single precision; None if there is no native kernel."""
    if native.kernels is None or a.dtype != np.float32:
        return None
    out = empty(sizes, kind)
    array = out._impl.array if kind is float32 else native.scratch(sizes, a.dtype)
    if not native.kernels.matmul(array, _by_rows(a, sizes[-1]), b, addend, alpha, beta):
        return None
    if kind is not float32:
        native.assign(out._impl.array, array)
    return out


def matrix_product(a: np.ndarray, b: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """Compute a @ b for matrices or batches, plus a bias per column."""
    if native.kernels is not None and a.dtype == np.float32 and a.ndim == b.ndim:
        out = native.scratch((*a.shape[:-1], b.shape[-1]), a.dtype)
        if native.kernels.matmul(out, _by_rows(a, b.shape[-1]), b, None if bias is None else bias[None], 1.0, 1.0):
            return out
    return np.matmul(a, b) if bias is None else np.matmul(a, b) + bias


def _matmul(self: Tensor, mat2: Tensor, sizes: tuple[int, ...]) -> Tensor:
    kind = self.dtype
    a, b = operand(self, kind), operand(mat2, kind)
    made = _native(sizes, kind, a, b, None, 1.0, 0.0)
    if made is not None:
        return made
    if kind.compute != kind.numpy or kind.name == "bool":
        return make(np.matmul(a, b), kind)
    out = empty(sizes, kind)
    with np.errstate(all="ignore"):
        np.matmul(a, b, out=out._impl.array)
    return out


@cpu("mm")
def mm(self, mat2):
    return _matmul(self, mat2, check_mm(self, mat2))


@cpu("bmm")
def bmm(self, mat2):
    return _matmul(self, mat2, check_bmm(self, mat2))


def _native_addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, sizes: tuple[int, ...], beta: float, alpha: float
) -> Tensor | None:
    if not isinstance(alpha, int | float) or not isinstance(beta, int | float):
        return None
    kind = mat1.dtype
    a, b, addend = (operand(tensor, kind) for tensor in (mat1, mat2, self))
    # With beta 0 the addend is ignored, even where it is NaN.
    added = None if beta == 0 else addend.reshape((1,) * (2 - addend.ndim) + addend.shape)
    return _native(sizes, kind, a, b, added, float(alpha), float(beta))


@cpu("addmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    sizes = check_addmm(self, mat1, mat2)
    made = _native_addmm(self, mat1, mat2, sizes, beta, alpha)
    if made is not None:
        return made
    out = _matmul(mat1, mat2, sizes)
    array, bias = out._impl.array, self._impl.array
    with np.errstate(all="ignore"):
        if alpha != 1:
            array *= out.dtype.numpy.type(alpha)
        if beta == 1:
            array += bias
        elif beta != 0:
            array += bias * out.dtype.numpy.type(beta)
    return out
