"""Checks and Meta rules of median and mode."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import bool_, int64, uint64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty, reduced_dims, reduced_sizes
from rushlight.ops.registry import meta


def check_median(self: Tensor, name: str) -> None:
    """Raise NotImplementedError for complex tensors and bool, which have no ranks."""
    if self.dtype.is_complex or self.dtype is bool_:
        raise not_implemented(f"{name}_cpu", self.dtype)


def check_selection(self: Tensor, dim: int, name: str) -> int:
    """Return the wrapped dimension; IndexError for an empty one, NotImplementedError for complex tensors."""
    axis = wrap_dim(dim, self.dim())
    if self.dim() and not self.size(axis):
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
    if self.dtype.is_complex:
        raise not_implemented(f"{name}_cpu", self.dtype)
    return axis


@meta("median", "nanmedian")
def median(self):
    check_median(self, "median")
    return empty((), self.dtype)


@meta("mode")
def mode(self, dim=-1, keepdim=False):
    sizes = reduced_sizes(self._impl.sizes, check_selection(self, dim, "mode"), keepdim)
    return empty(sizes, self.dtype), empty(sizes, int64)


def check_hash(self: Tensor, dim: Sequence[int] | int, mode: int) -> tuple[int, ...]:
    """Return the dimensions of a hash. RuntimeError for a mode other than 0, and for an empty tensor without dimensions;
    IndexError where a dimension of size 0 is reduced."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if self.dtype.is_complex:
        raise not_implemented("xor_sum_cpu", self.dtype)
    if not isinstance(dim, int) and not len(dim) and not self.numel():
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    dims = reduced_dims(self.dim(), dim)
    for each in dims:
        if self.size(each) == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {each} to have non-zero size.")
    return dims


@meta("hash_tensor")
def hash_tensor(self, dim=(), *, keepdim=False, mode=0):
    check_hash(self, dim, mode)
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), uint64)
