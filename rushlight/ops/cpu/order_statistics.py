"""CPU kernels of median (over all elements) and mode, on NumPy."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import float64, int64, uint64
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import operand
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.order_statistics import check_hash, check_median, check_selection
from rushlight.ops.registry import cpu


def _middle(values: np.ndarray, self: Tensor) -> Tensor:
    """Return the lower of the two middle values; NaN if empty."""
    if not values.size:
        kind = self.dtype.numpy
        # NaN converted to an integer: the smallest int64, whose low bits are zero in narrower types.
        nothing = np.nan if self.dtype.is_floating_point else np.iinfo(kind).min if kind.itemsize >= 4 else 0
        return contiguous(np.asarray(nothing), self.dtype)
    rank = (values.size - 1) // 2
    return contiguous(np.partition(values, rank)[rank], self.dtype)


@cpu("median")
def median(self):
    check_median(self, "median")
    values = operand(self, self.dtype).reshape(-1)
    if self.dtype.is_floating_point and np.isnan(values).any():
        return contiguous(np.asarray(np.nan), self.dtype)
    return _middle(values, self)


@cpu("nanmedian")
def nanmedian(self):
    check_median(self, "median")
    values = operand(self, self.dtype).reshape(-1)
    return _middle(values[~np.isnan(values)] if self.dtype.is_floating_point else values, self)


@cpu("mode")
def mode(self, dim=-1, keepdim=False):
    axis = check_selection(self, dim, "mode")
    array = np.moveaxis(np.atleast_1d(self._impl.array), axis, -1)
    positions = np.zeros(array.shape[:-1], np.int64)
    for position in np.ndindex(positions.shape):
        positions[position] = _last_of_most_frequent(array[position])
    values = np.take_along_axis(array, positions[..., None], -1)[..., 0]
    if self.dim() and keepdim:
        values, positions = np.expand_dims(values, axis), np.expand_dims(positions, axis)
    return contiguous(values, self.dtype), contiguous(positions, int64)


def _last_of_most_frequent(row: np.ndarray) -> int:
    """Return the last index of the most frequent value (the smallest of several)."""
    order = np.argsort(row, kind="stable")
    ordered = row[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(row) - 1)
    return order[ends[np.argmax(np.diff(ends, prepend=-1))]]


@cpu("hash_tensor")
def hash_tensor(self, dim=(), *, keepdim=False, mode=0):
    """Return the xor of the elements' bits: floats as float64, integers as 64-bit ones."""
    axes = check_hash(self, dim, mode)
    values = operand(self, float64 if self.dtype.is_floating_point else self.dtype)
    wide = values if self.dtype.is_floating_point or values.dtype == np.uint64 else values.astype(np.int64)
    found = np.bitwise_xor.reduce(np.ascontiguousarray(wide).view(np.uint64).reshape(values.shape), axis=axes, keepdims=keepdim)
    return contiguous(np.asarray(found, np.uint64), uint64)
