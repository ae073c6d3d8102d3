"""CPU kernels of sort, topk and cumsum. NaN counts as greater than every number."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import convert, empty, operand
from rushlight.ops.meta.sorting import check_sort, check_topk, cumsum_dtype, kept_strides
from rushlight.ops.registry import cpu


def _order(keys: np.ndarray, descending: bool) -> np.ndarray:
    """Return indices that sort the last axis, stable for equal values."""
    if not descending:
        return np.argsort(keys, axis=-1, kind="stable")
    # Sorting the reversed values and reversing the result keeps equal values in order.
    reverse_order = np.argsort(keys[..., ::-1], axis=-1, kind="stable")
    return keys.shape[-1] - 1 - reverse_order[..., ::-1]


def _keys(self: Tensor, axis: int) -> np.ndarray:
    return np.moveaxis(operand(self, self.dtype), axis, -1)


def _values_and_order(self: Tensor, order: np.ndarray, axis: int, strides: tuple[int, ...] | None) -> tuple[Tensor, Tensor]:
    """Return the values at `order` (whose last axis is `axis` of the results) and the order itself, as tensors."""
    array = np.moveaxis(self._impl.array, axis, -1)
    positions = np.moveaxis(order, -1, axis)
    values, indices = empty(positions.shape, self.dtype, strides), empty(positions.shape, int64, strides)
    values._impl.array[...] = np.moveaxis(np.take_along_axis(array, order, axis=-1), -1, axis)
    indices._impl.array[...] = positions
    return values, indices


def _scalar_pair(self: Tensor) -> tuple[Tensor, Tensor]:
    """Return the result for a 0-dim tensor: itself, at index 0."""
    values, indices = empty((), self.dtype), empty((), int64)
    values._impl.array[...] = self._impl.array
    indices._impl.array[...] = 0
    return values, indices


def _native_sort(
    self: Tensor, axis: int, sizes: tuple[int, ...], descending: bool, strides: tuple[int, ...] | None
) -> tuple[Tensor, Tensor] | None:
    """Return the first values in order along `axis`, as many as `sizes` says, or None where there is no kernel."""
    array = self._impl.array
    if native.kernels is None or array.dtype.kind not in "if" or array.dtype.itemsize < 4 or not array.size:
        return None
    last = native.contiguous(np.moveaxis(array, axis, -1))
    shape = (*last.shape[:-1], sizes[axis])
    values, indices = empty(sizes, self.dtype, strides), empty(sizes, int64, strides)
    targets = [tensor._impl.array for tensor in (values, indices)]
    direct = axis == array.ndim - 1 and all(target.flags.c_contiguous for target in targets)
    made = targets if direct else [native.scratch(shape, target.dtype) for target in targets]
    if not native.kernels.sort(*made, last, descending):
        return None
    if not direct:
        for target, source in zip(targets, made, strict=True):
            native.assign(target, np.moveaxis(source, -1, axis))
    return values, indices


@cpu("sort.stable")
def sort(self, *, stable, dim=-1, descending=False):
    axis = check_sort(self, dim)
    if not self.dim():
        return _scalar_pair(self)
    found = _native_sort(self, axis, self._impl.sizes, bool(descending), kept_strides(self))
    if found is not None:
        return found
    return _values_and_order(self, _order(_keys(self, axis), descending), axis, kept_strides(self))


@cpu("topk")
def topk(self, k, dim=-1, largest=True, sorted=True):
    axis, sizes = check_topk(self, k, dim)
    if not sizes:
        return _scalar_pair(self)
    found = _native_sort(self, axis, sizes, largest, None)
    if found is not None:
        return found
    keys = _keys(self, axis)
    return _values_and_order(self, _top(keys, k, largest), axis, None)


def _top(keys: np.ndarray, k: int, largest: bool) -> np.ndarray:
    """Return indices of the `k` extreme values of the last axis, in order; for a small `k`, sorts only these."""
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
    array = self._impl.array if kind is self.dtype else convert(self._impl.array, kind.numpy)
    out = empty(self._impl.sizes, kind)
    if not array.ndim:
        out._impl.array[...] = array
        return out
    if native.kernels is not None and native.kernels.cumsum(out._impl.array, native.contiguous(array), axis):
        return out
    # Accumulate floats in double precision, as torch does on the CPU.
    accumulate = np.float64 if kind.is_floating_point else kind.numpy
    with np.errstate(all="ignore"):
        out._impl.array[...] = np.cumsum(array, axis=axis, dtype=accumulate)
    return out
