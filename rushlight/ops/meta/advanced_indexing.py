"""Checks and Meta rules of `index` and `index_put`: indexing by tensors of integers, mixed with None.

Masks must have been converted to integers before; that needs their values, so only the CPU kernel can do it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.strides import broadcast_shapes, elementwise_strides, expand_strides
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentShapeError
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta

MASKS = ("bool", "uint8")


def check_index_dtypes(self: Tensor, indices: Sequence[Tensor | None]) -> None:
    """Raise IndexError for an index that is neither integer nor mask, or when there are too many."""
    taken = 0
    for index in indices:
        if index is None:
            taken += 1
            continue
        if index.dtype.name not in (*MASKS, "int32", "int64"):
            raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, but got {index.dtype}")
        _check_mask(self, index, taken)
        taken += index.dim() if index.dtype.name in MASKS else 1
    if all(index is None for index in indices):
        raise IndexError("index: at least one index must be provided, besides None")
    if taken > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()} (got {taken})")


def _check_mask(self: Tensor, index: Tensor, first: int) -> None:
    if index.dtype.name not in MASKS:
        return
    if not index.dim():
        raise IndexError("a 0-dim mask selects along no dimension: give self and the mask one with unsqueeze(0)")
    sizes = self._impl.sizes
    for offset, size in enumerate(index._impl.sizes):
        if first + offset >= len(sizes):
            raise IndexError(f"too many indices for tensor of dimension {len(sizes)}")
        if sizes[first + offset] != size:
            raise IndexError(
                f"The shape of the mask {list(index.shape)} at index {offset} does not match the shape of the indexed "
                f"tensor {list(sizes)} at index {first + offset}"
            )


def index_geometry(self: Tensor, indices: Sequence[Tensor | None]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and strides of `self` indexed by integer tensors, one entry per dimension from the first on.

    The broadcast index dimensions replace adjacent indices in place; otherwise they come first.
    """
    given = [index._impl for index in indices if index is not None]
    try:
        shape = broadcast_shapes(*[impl.sizes for impl in given])
    except RuntimeError:
        shapes = ", ".join(str(list(impl.sizes)) for impl in given)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    positions = [dim for dim, index in enumerate(indices) if index is not None]
    start = positions[0] if positions[-1] - positions[0] == len(positions) - 1 else 0
    kept = [dim for dim in range(self.dim()) if dim not in positions]
    sizes, strides = self._impl.sizes, self._impl.strides
    _check_not_empty(shape, [sizes[dim] for dim in positions], positions)
    before, after = kept[:start], kept[start:]
    result = (*(sizes[dim] for dim in before), *shape, *(sizes[dim] for dim in after))
    own = (*(strides[dim] for dim in before), *(0,) * len(shape), *(strides[dim] for dim in after))
    # Stride order as in an elementwise operator over `self`, at its non-indexed dimensions, and the indices.
    others = [_place(impl, shape, len(before), len(after)) for impl in given]
    return result, elementwise_strides(result, [(result, own), *((result, other) for other in others)])


def _place(impl, shape: tuple[int, ...], before: int, after: int) -> tuple[int, ...]:
    strides = expand_strides(impl.sizes, impl.strides, shape)[1]
    return (0,) * before + strides + (0,) * after


def _check_not_empty(shape: tuple[int, ...], indexed: list[int], positions: list[int]) -> None:
    if 0 in indexed and 0 not in shape:
        dim = positions[indexed.index(0)]
        raise IndexError(f"index is out of bounds for dimension with size 0 (dimension {dim})")


def check_index_put(self: Tensor, values: Tensor, sizes: tuple[int, ...]) -> None:
    """Raise RuntimeError unless `values` has the dtype of `self` and broadcasts to the indexed `sizes`."""
    if self.dtype is not values.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {self.dtype.scalar_name} for the destination and "
            f"{values.dtype.scalar_name} for the source."
        )
    given = values._impl.sizes
    while len(given) > len(sizes) and given[0] == 1:
        given = given[1:]
    fits = len(given) <= len(sizes) and all(
        size in (1, wanted) for size, wanted in zip(reversed(given), reversed(sizes), strict=False)
    )
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(sizes)}"
        )


def _reject_masks(indices: Sequence[Tensor | None], name: str) -> None:
    if any(index is not None and index.dtype.name in MASKS for index in indices):
        raise DataDependentShapeError(f"{name} with a boolean mask")


@meta("index.Tensor")
def index(self, indices):
    check_index_dtypes(self, indices)
    _reject_masks(indices, "index")
    sizes, strides = index_geometry(self, indices)
    return empty(sizes, self.dtype, strides)


@meta("index_put_")
def index_put_(self, indices, values, accumulate=False):
    check_index_dtypes(self, indices)
    # A mask selects an unknown number of elements, but the result's shape is known.
    if not any(index is not None and index.dtype.name in MASKS for index in indices):
        check_index_put(self, values, index_geometry(self, indices)[0])
    return self


@meta("index_put")
def index_put(self, indices, values, accumulate=False):
    index_put_(self, indices, values, accumulate)
    return empty(self._impl.sizes, self.dtype, _clone_strides(self))


def _clone_strides(self: Tensor) -> tuple[int, ...]:
    return elementwise_strides(self._impl.sizes, [(self._impl.sizes, self._impl.strides)])
