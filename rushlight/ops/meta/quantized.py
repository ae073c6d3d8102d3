"""Shape checks and Meta rules of products with 8-bit integers."""

from __future__ import annotations

from rushlight.core.dtype import bfloat16, float16, float32, int8, int32
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> tuple[int, int]:
    """The shape of `self @ mat2.T * scales`; RuntimeError when sizes or dtypes do not fit."""
    name, a, b = "_weight_int8pack_mm", self._impl, mat2._impl
    if a.dtype not in (float32, bfloat16, float16):
        raise RuntimeError(f"{name} : expect A to be either 32-bit or 16-bit float tensor, got {a.dtype}.")
    if b.dtype is not int8:
        raise RuntimeError(f"{name} : expect B to be int8 tensor, got {b.dtype}.")
    if len(a.sizes) != 2:
        raise RuntimeError(f"{name} : expect A to be 2D tensor, got shape {list(a.sizes)}.")
    if len(b.sizes) != 2 or b.sizes[1] != a.sizes[1]:
        raise RuntimeError(f"{name} : expect B.size(1) == {a.sizes[1]}, got shape {list(b.sizes)}")
    if scales._impl.sizes != (b.sizes[0],):
        raise RuntimeError(
            f"{name} : expect scales to be 1d tensor with size {b.sizes[0]}, got shape {list(scales._impl.sizes)}"
        )
    if scales.dtype is not a.dtype:
        raise RuntimeError(f"{name} : expect scales to have the dtype of A, {a.dtype}, got {scales.dtype}.")
    return a.sizes[0], b.sizes[0]


def check_int_mm(self: Tensor, mat2: Tensor) -> tuple[int, int]:
    """The shape of a product of int8 matrices; RuntimeError when sizes or dtypes do not fit."""
    a, b = self._impl, mat2._impl
    for place, impl in (("self", a), ("mat2", b)):
        if len(impl.sizes) != 2:
            raise RuntimeError(f"Expected {place} to be of dimension 2 but got {len(impl.sizes)}")
        if impl.dtype is not int8:
            raise RuntimeError(f"Expected {place} dtype to be of type int8 but got {impl.dtype}")
    if a.sizes[1] != b.sizes[0]:
        raise RuntimeError(f"_int_mm: self.size(1) needs to match mat2.size(0) but got {a.sizes[1]} and {b.sizes[0]}")
    return a.sizes[0], b.sizes[1]


@meta("_weight_int8pack_mm")
def weight_int8pack_mm(self, mat2, scales):
    return empty(check_weight_int8pack_mm(self, mat2, scales), self.dtype)


@meta("_int_mm")
def int_mm(self, mat2):
    return empty(check_int_mm(self, mat2), int32)
