"""CPU kernels of matrix products, on NumPy's BLAS."""

from __future__ import annotations

import numpy as np

from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import empty, make, operand
from rushlight.ops.meta.products import check_addmm, check_bmm, check_mm
from rushlight.ops.registry import cpu


def _matmul(self: Tensor, mat2: Tensor, sizes: tuple[int, ...]) -> Tensor:
    kind = self.dtype
    a, b = operand(self, kind), operand(mat2, kind)
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


@cpu("addmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    sizes = check_addmm(self, mat1, mat2)
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
