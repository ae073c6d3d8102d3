"""CPU kernels of sort, topk and cumsum. NaN counts as greater than every number."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import convert, empty, operand
from rushlight.ops.meta.sorting import check_sort, check_topk, cumsum_dtype, kept_strides
from rushlight.ops.registry import cpu


def _order(keys: np.ndarray, descending: bool) -> np.ndarray:
    """Indices that sort the last axis, equal values in their given order."""
    if not descending:
        return np.argsort(keys, axis=-1, kind="stable")
    # Sorting the reversed values and reversing the result keeps equal values in order.
    reverse_order = np.argsort(keys[..., ::-1], axis=-1, kind="stable")
    return keys.shape[-1] - 1 - reverse_order[..., ::-1]


def _keys(self: Tensor, axis: int) -> np.ndarray:
    return np.moveaxis(operand(self, self.dtype), axis, -1)


def _pair(self: Tensor, order: np.ndarray, axis: int, strides: tuple[int, ...] | None) -> tuple[Tensor, Tensor]:
    """The values at `order` (whose last axis is `axis` of the results) and the order itself, as tensors."""
    array = np.moveaxis(self._impl.array, axis, -1)
    positions = np.moveaxis(order, -1, axis)
    values, indices = empty(positions.shape, self.dtype, strides), empty(positions.shape, int64, strides)
    values._impl.array[...] = np.moveaxis(np.take_along_axis(array, order, axis=-1), -1, axis)
    indices._impl.array[...] = positions
    return values, indices


def _scalar_pair(self: Tensor) -> tuple[Tensor, Tensor]:
    """What a 0-dim tensor gives: itself, at index 0."""
    values, indices = empty((), self.dtype), empty((), int64)
    values._impl.array[...] = self._impl.array
    indices._impl.array[...] = 0
    return values, indices


@cpu("sort.stable")
def sort(self, *, stable, dim=-1, descending=False):
    axis = check_sort(self, dim)
    if not self.dim():
        return _scalar_pair(self)
    return _pair(self, _order(_keys(self, axis), descending), axis, kept_strides(self))


@cpu("topk")
def topk(self, k, dim=-1, largest=True, sorted=True):
    axis, sizes = check_topk(self, k, dim)
    if not sizes:
        return _scalar_pair(self)
    keys = _keys(self, axis)
    return _pair(self, _top(keys, k, largest), axis, None)


def _top(keys: np.ndarray, k: int, largest: bool) -> np.ndarray:
    """Indices of the `k` extreme values of the last axis, in order; only they are sorted where `k` is small."""
    count = keys.shape[-1]
    if not 0 < k * 8 <= count:
        return _order(keys, largest)[..., :k]
    part = np.argpartition(keys, count - k if largest else k, axis=-1)
    chosen = np.sort(part[..., count - k :] if largest else part[..., :k], axis=-1)
    within = _order(np.take_along_axis(keys, chosen, axis=-1), largest)
    return np.take_along_axis(chosen, within, axis=-1)


@cpu("cumsum")
def cumsum(self, dim, *, dtype=None):
    axis, kind = wrap_dim(dim, self.dim()), cumsum_dtype(self, dtype)
    array = convert(self._impl.array, kind.numpy)
    out = empty(self._impl.sizes, kind)
    if not array.ndim:
        out._impl.array[...] = array
        return out
    # Running sums of floats are kept in double precision, as torch does on the CPU.
    accumulate = np.float64 if kind.is_floating_point else kind.numpy
    with np.errstate(all="ignore"):
        out._impl.array[...] = np.cumsum(array, axis=axis, dtype=accumulate)
    return out
