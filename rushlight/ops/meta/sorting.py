"""Checks and Meta rules of sort, topk and cumsum."""

from __future__ import annotations

from rushlight.core.dtype import bool_, dtype, int64
from rushlight.core.strides import contiguous_strides, elementwise_strides, is_non_overlapping_and_dense, wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_sort(self: Tensor, dim: int, name: str = "Sort") -> int:
    """Return the wrapped dimension; RuntimeError for complex tensors."""
    if self.dtype.is_complex:
        raise RuntimeError(f"{name} does not support complex dtypes on CPU, but got {self.dtype}")
    return wrap_dim(dim, self.dim())


def kept_strides(self: Tensor) -> tuple[int, ...]:
    """Return the strides of a result like `self`: the same if it is dense, else dense in the same order."""
    impl = self._impl
    if is_non_overlapping_and_dense(impl.sizes, impl.strides):
        return impl.strides
    return elementwise_strides(impl.sizes, [(impl.sizes, impl.strides)])


def check_topk(self: Tensor, k: int, dim: int) -> tuple[int, tuple[int, ...]]:
    """Return the wrapped dimension and the result's sizes; RuntimeError for fewer than `k` values."""
    axis = check_sort(self, dim, "topk")
    if self.dtype is bool_:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    sizes = self._impl.sizes
    if not 0 <= k <= (sizes[axis] if sizes else 1):
        raise RuntimeError(
            f"selected index k out of range: topk got k={k} for dimension {axis} of a tensor of shape {list(sizes)}"
        )
    return axis, tuple(k if index == axis else size for index, size in enumerate(sizes))


def cumsum_dtype(self: Tensor, given: dtype | None) -> dtype:
    """Return the dtype of cumsum: the given one, but never bool; else int64 for integers and bool, and the input's dtype
    otherwise."""
    if given is bool_:
        raise not_implemented("cumsum_out_cpu", bool_)
    return given or (int64 if self.dtype.is_integral else self.dtype)


@meta("sort.stable")
def sort(self, *, stable, dim=-1, descending=False):
    check_sort(self, dim)
    strides = kept_strides(self)
    return empty(self._impl.sizes, self.dtype, strides), empty(self._impl.sizes, int64, strides)


@meta("topk")
def topk(self, k, dim=-1, largest=True, sorted=True):
    _, sizes = check_topk(self, k, dim)
    return empty(sizes, self.dtype), empty(sizes, int64)


@meta("cumsum")
def cumsum(self, dim, *, dtype=None):
    wrap_dim(dim, self.dim())
    return empty(self._impl.sizes, cumsum_dtype(self, dtype), contiguous_strides(self._impl.sizes))
