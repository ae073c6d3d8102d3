"""Shape checks and Meta rules of matrix products."""

from __future__ import annotations

from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_mm(self: Tensor, mat2: Tensor, name: str = "mm") -> tuple[int, int]:
    """Return the shape of the product of two matrices; RuntimeError when they do not fit."""
    a, b = self._impl, mat2._impl
    if len(a.sizes) != 2:
        raise RuntimeError(f"self must be a matrix ({name}: got a tensor of shape {list(a.sizes)})")
    if len(b.sizes) != 2:
        raise RuntimeError(f"mat2 must be a matrix ({name}: got a tensor of shape {list(b.sizes)})")
    if a.sizes[1] != b.sizes[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.sizes[0]}x{a.sizes[1]} and {b.sizes[0]}x{b.sizes[1]})"
        )
    _check_dtypes(self, mat2, name)
    return a.sizes[0], b.sizes[1]


def check_bmm(self: Tensor, mat2: Tensor) -> tuple[int, int, int]:
    """Return the shape of a batched product; RuntimeError when the operands do not fit."""
    a, b = self._impl.sizes, mat2._impl.sizes
    if len(a) != 3 or len(b) != 3:
        raise RuntimeError(f"batch1 and batch2 must be 3D tensors (bmm: got shapes {list(a)} and {list(b)})")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}]."
        )
    _check_dtypes(self, mat2, "bmm")
    return a[0], a[1], b[2]


def _check_dtypes(self: Tensor, mat2: Tensor, name: str) -> None:
    if self.dtype is not mat2.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {self.dtype} != {mat2.dtype} ({name}: convert one with .to())"
        )


def check_addmm(self: Tensor, mat1: Tensor, mat2: Tensor) -> tuple[int, int]:
    """Return the shape of `addmm`; RuntimeError unless `self` broadcasts to it."""
    sizes = check_mm(mat1, mat2, "addmm")
    if broadcast_shapes(sizes, self._impl.sizes) != sizes:
        raise RuntimeError(f"addmm: input of shape {list(self.shape)} does not broadcast to the product's {list(sizes)}")
    _check_dtypes(self, mat1, "addmm")
    return sizes


@meta("mm")
def mm(self, mat2):
    return empty(check_mm(self, mat2), self.dtype)


@meta("addmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    return empty(check_addmm(self, mat1, mat2), self.dtype)


@meta("bmm")
def bmm(self, mat2):
    return empty(check_bmm(self, mat2), self.dtype)
