"""Checks and Meta rules of median and mode."""

from __future__ import annotations

from rushlight.core.dtype import bool_, int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty, reduced_sizes
from rushlight.ops.registry import meta


def check_median(self: Tensor, name: str) -> None:
    """NotImplementedError for complex tensors and bool, which have no ranks."""
    if self.dtype.is_complex or self.dtype is bool_:
        raise not_implemented(f"{name}_cpu", self.dtype)


def check_selection(self: Tensor, dim: int, name: str) -> int:
    """The wrapped dimension; IndexError when it has nothing to choose from, NotImplementedError for complex tensors."""
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
