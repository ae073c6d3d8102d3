"""Meta rules of reductions."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import bool_, dtype, int64, uint8
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty, reduced_dims, reduced_sizes
from rushlight.ops.registry import meta


def sum_dtype(self: Tensor, given: dtype | None) -> dtype:
    """Return the dtype of sums and products: int64 for integers and bool, the input's dtype otherwise."""
    return given or (int64 if self.dtype.is_integral else self.dtype)


def check_extremum(self: Tensor, dim: Sequence[int] | int, name: str) -> None:
    """Raise IndexError for an empty reduction over `dim` (all when empty); NotImplementedError for complex numbers."""
    if self.dtype.is_complex:
        raise not_implemented(f"{name}_cpu", self.dtype)
    sizes = self._impl.sizes
    for axis in reduced_dims(len(sizes), dim):
        if sizes[axis] == 0:
            if isinstance(dim, int) or len(dim):
                raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                "the 'dim' argument."
            )


@meta("sum.dim_IntList", "prod.dim_int")
def sum_(self, dim, keepdim=False, *, dtype=None):
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), sum_dtype(self, dtype))


@meta("amax", "amin")
def extremum(self, dim=(), keepdim=False):
    check_extremum(self, dim, "amax/amin")
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), self.dtype)


@meta("any.dims", "all.dims")
def quantifier(self, dim=None, keepdim=False):
    kind = uint8 if self.dtype is uint8 else bool_
    if dim is not None and not len(dim):
        return empty(self._impl.sizes, kind)
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), kind)


def check_position(self: Tensor, name: str) -> None:
    """Raise RuntimeError for complex numbers and bool, which have no argmax."""
    if self.dtype.is_complex or self.dtype is bool_:
        raise RuntimeError(f"{name}(): does not support {'bool' if self.dtype is bool_ else 'complex'} input")


@meta("argmax", "argmin")
def position(self, dim=None, keepdim=False):
    check_position(self, "argmax")
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), int64)


@meta("var.correction")
def var(self, dim=None, *, correction=None, keepdim=False):
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), self.dtype.to_real())
