"""CPU kernels of `index` and `index_put`: indexing by tensors of integers and masks, mixed with None."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rushlight.core.dtype import bool_, int64, uint8
from rushlight.core.strides import may_overlap
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native_indexing
from rushlight.ops.cpu.common import empty
from rushlight.ops.cpu.creation import clone
from rushlight.ops.cpu.indexing import add_at, check_bounds
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.advanced_indexing import MASKS, check_index_dtypes, check_index_put, index_geometry
from rushlight.ops.meta.checks import check_operands, check_writable
from rushlight.ops.registry import cpu


def _integer_indices(self: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return the indices with each mask replaced by the positions where it is true, one tensor per dimension of the mask."""
    check_index_dtypes(self, indices)
    result: list[Tensor | None] = []
    for index in indices:
        if index is None or index.dtype.name not in MASKS:
            result.append(index)
        else:
            if index.dtype is uint8:
                warnings.warn(
                    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", stacklevel=4
                )
            result += [contiguous(found, int64) for found in np.nonzero(index._impl.array)]
    return result


def _wrap_negative_indices(self: Tensor, indices: Sequence[Tensor | None]) -> list[np.ndarray | None]:
    """Return the indices as non-negative arrays; IndexError outside the dimensions."""
    arrays: list[np.ndarray | None] = []
    for dim, index in enumerate(indices):
        if index is None:
            arrays.append(None)
            continue
        size, array = self._impl.sizes[dim], index._impl.array
        check_bounds(array, size, dim, IndexError, lowest=-size)
        arrays.append(np.where(array < 0, array + size, array) if array.size and array.min() < 0 else array)
    return arrays


def _key(arrays: list[np.ndarray | None]) -> tuple:
    return tuple(slice(None) if array is None else array for array in arrays)


def _rows(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor | None:
    """Return rows of a row-major tensor at non-negative indices, the common case; None for all others."""
    first = indices[0] if len(indices) == 1 else None
    if first is None or first._impl.dtype is not int64 or not self._impl.sizes or not first.is_contiguous():
        return None
    out = empty((*first._impl.sizes, *self._impl.sizes[1:]), self.dtype)
    return out if native_indexing.take(out._impl.array, self._impl.array, first._impl.array, 0) else None


def _mask_of(self: Tensor, indices: Sequence[Tensor | None]) -> np.ndarray | None:
    """Return the index, if it is a single mask over the first dimensions of `self`; else None."""
    first = indices[0] if len(indices) == 1 else None
    if first is None or first._impl.dtype is not bool_ or not first._impl.sizes:
        return None
    sizes = first._impl.sizes
    return first._impl.array if sizes == self._impl.sizes[: len(sizes)] else None


@cpu("index.Tensor")
def index(self, indices):
    found = _rows(self, indices)
    if found is not None:
        return found
    mask = _mask_of(self, indices)
    if mask is not None and self._impl.is_contiguous():
        return contiguous(self._impl.array[mask], self.dtype)
    whole = _integer_indices(self, indices)
    sizes, strides = index_geometry(self, whole)
    out = empty(sizes, self.dtype, strides)
    if not out.numel():
        return out
    arrays, target = _wrap_negative_indices(self, whole), out._impl.array
    given = [dim for dim, array in enumerate(arrays) if array is not None]
    if len(given) == 1 and target.flags.c_contiguous:
        if native_indexing.take(target, self._impl.array, arrays[given[0]], given[0]):
            return out
    target[...] = self._impl.array[_key(arrays)]
    return out


def _put_plainly(self: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> bool:
    """Write at a single mask or integer tensor, the common case. NumPy checks all indices before it writes."""
    first = indices[0] if len(indices) == 1 else None
    if first is None or not self._impl.sizes or self.dtype is not values.dtype:
        return False
    positions = first._impl.array if first._impl.dtype is int64 else _mask_of(self, indices)
    if positions is None:
        return False
    try:
        self._impl.array[positions] = values._impl.array
    except (IndexError, ValueError):
        return False
    return True


@cpu("index_put_")
def index_put_(self, indices, values, accumulate=False):
    check_writable(self, "index_put_")
    check_operands(self, "index_put_", (values, *indices), reads_later=True)
    if not accumulate and _put_plainly(self, indices, values):
        return self
    whole = _integer_indices(self, indices)
    sizes, _ = index_geometry(self, whole)
    check_index_put(self, values, sizes)
    if 0 in sizes:
        return self
    key, array, given = _key(_wrap_negative_indices(self, whole)), self._impl.array, values._impl.array
    given = given.reshape(given.shape[max(given.ndim - len(sizes), 0) :])
    if accumulate:
        _accumulate(array, key, np.broadcast_to(given, sizes), self.dtype)
    else:
        array[key] = given
    return self


def _accumulate(array: np.ndarray, key: tuple, values: np.ndarray, kind) -> None:
    if may_overlap(array.shape, array.strides):
        _accumulate_in_memory(array, key, values, kind)
        return
    positions = np.arange(array.size).reshape(array.shape)[key]
    flat = array.reshape(-1)
    add_at(flat, positions.reshape(-1), values.reshape(-1), kind)
    if not np.shares_memory(flat, array):
        array[...] = flat.reshape(array.shape)


def _accumulate_in_memory(array: np.ndarray, key: tuple, values: np.ndarray, kind) -> None:
    """Add to elements that may share memory, as the windows of `unfold` do: each sum is that of a place in memory."""
    steps = [stride // array.itemsize for stride in array.strides]
    extent = 1 + sum((size - 1) * step for size, step in zip(array.shape, steps, strict=True))
    memory = as_strided(array, (extent,), (array.itemsize,))
    places = np.arange(extent)
    positions = as_strided(places, array.shape, [step * places.itemsize for step in steps])[key]
    add_at(memory, positions.reshape(-1), values.reshape(-1), kind)


@cpu("index_put")
def index_put(self, indices, values, accumulate=False):
    return index_put_(clone(self), indices, values, accumulate)
