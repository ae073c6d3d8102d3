"""CPU kernels of searchsorted and of the search for distinct values, on NumPy."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import int32, int64
from rushlight.core.strides import strides_in_order
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import operand
from rushlight.ops.cpu.results import by_strides, contiguous
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.searching import check_searchsorted, check_unique_dim
from rushlight.ops.promotion import result_type
from rushlight.ops.registry import cpu


@cpu("searchsorted.Tensor")
def searchsorted(sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None):
    after = check_searchsorted(sorted_sequence, self, out_int32, right, side, sorter)
    compared = result_type(sorted_sequence, self)
    sequence, values = operand(sorted_sequence, compared), operand(self, compared)
    order = None if sorter is None else sorter._impl.array
    if order is not None and order.size and (order.min() < 0 or order.max() >= sequence.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    kind, where = int32 if out_int32 else int64, "right" if after else "left"
    if sequence.ndim == 1:
        return contiguous(_places(sequence, values, where, order), kind)
    out = np.empty(values.shape, np.int64)
    for row in np.ndindex(sequence.shape[:-1]):
        out[row] = _places(sequence[row], values[row], where, None if order is None else order[row])
    return contiguous(out, kind)


def _places(sequence: np.ndarray, values: np.ndarray, where: str, order: np.ndarray | None) -> np.ndarray:
    found = np.searchsorted(sequence, values, where, order)
    # NaN sorts behind everything, also behind other NaN.
    return np.where(np.isnan(values), len(sequence), found) if values.dtype.kind == "f" else found


def _results(self: Tensor, values: np.ndarray, inverse: np.ndarray | None, counts: np.ndarray | None) -> tuple:
    """Return the distinct values, with inverse and counts if asked for; empty tensors for the rest."""
    nothing = np.empty(0, np.int64)
    others = [contiguous(nothing if part is None else part, int64) for part in (inverse, counts)]
    return contiguous(values, self.dtype), *others


def _check_real(self: Tensor, name: str) -> None:
    if self.dtype.is_complex:
        raise not_implemented(name, self.dtype)


@cpu("_unique2")
def unique(self, sorted=True, return_inverse=False, return_counts=False):
    _check_real(self, "unique")
    array = operand(self, self.dtype)
    wanted = return_inverse or return_counts
    found = np.unique(array, return_inverse=wanted, return_counts=return_counts, equal_nan=False)
    values, inverse, counts = (*found, None, None)[:3] if wanted else (found, None, None)
    return _results(self, values, None if inverse is None else inverse.reshape(array.shape), counts)


@cpu("unique_dim")
def unique_dim(self, dim, sorted=True, return_inverse=False, return_counts=False):
    axis = check_unique_dim(self, dim)
    _check_real(self, "unique_dim")
    slices = np.moveaxis(np.atleast_1d(operand(self, self.dtype)), axis, 0)
    flat = slices.reshape(slices.shape[0], -1) if slices.size else np.empty((slices.shape[0], 0), slices.dtype)
    order = np.lexsort(flat.T[::-1]) if flat.size else np.arange(len(flat))
    starts = _starts(flat[order])
    inverse = np.empty(len(flat), np.int64)
    inverse[order] = np.cumsum(starts) - 1
    found = slices[order][starts]
    counts = np.diff(np.append(np.flatnonzero(starts), len(flat)))
    values, *others = _results(self, found, inverse, counts)
    moved = np.moveaxis(found, 0, axis)
    order = [axis, *(dim for dim in range(moved.ndim) if dim != axis)]
    return by_strides(moved, self.dtype, strides_in_order(moved.shape, order)), *others


def _starts(rows: np.ndarray) -> np.ndarray:
    """Return a mask of the rows that differ from the one before."""
    starts = np.ones(len(rows), np.bool_)
    if len(rows):
        starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return starts


@cpu("unique_consecutive")
def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    _check_real(self, "unique_consecutive")
    array = operand(self, self.dtype)
    axis = 0 if dim is None else check_unique_dim(self, dim)
    slices = array.reshape(-1) if dim is None else np.moveaxis(np.atleast_1d(array), axis, 0)
    starts = _starts(slices.reshape(len(slices), -1) if slices.size else np.empty((len(slices), 0)))
    values = np.moveaxis(slices[starts], 0, axis)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(np.flatnonzero(starts), len(slices)))
    if dim is not None:
        return _results(self, values, inverse, counts)
    return _results(self, values, inverse.reshape(array.shape) if return_inverse else None, counts if return_counts else None)
