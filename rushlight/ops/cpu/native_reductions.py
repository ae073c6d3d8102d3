"""Reductions on the native kernels: convert arrays to the row-major form that the kernels take.

In: an array of any layout and dtype, axes, and the array for the result. Out: whether the result was written.
"""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import bfloat16
from rushlight.ops.cpu import native

SUM, PROD, MAX, MIN, ANY, ALL, ARGMAX, ARGMIN, DEVIATION, OFFSET = range(10)

_BOOL, _INT32, _INT64, _FLOAT32, _FLOAT64 = map(np.dtype, (np.bool_, np.int32, np.int64, np.float32, np.float64))
_HALVES = (np.dtype(np.float16), bfloat16.numpy)


def _kernel_dtypes(operation: int, source: np.dtype, wanted: np.dtype) -> tuple[np.dtype, np.dtype] | None:
    """Return the dtypes in which a kernel computes and returns, for a result of dtype `wanted`; None without a kernel."""
    if source.kind == "c" or wanted.kind == "c":
        return None
    if operation in (ANY, ALL):
        return _BOOL, _BOOL
    if operation in (ARGMAX, ARGMIN):
        return (_FLOAT32 if source in _HALVES else _INT32 if source.itemsize < 4 else source), _INT64
    if operation in (MAX, MIN):
        return (source, _FLOAT32) if source in _HALVES else (_INT32, _INT32) if source.itemsize < 4 else (source, source)
    if operation in (DEVIATION, OFFSET):
        return source, source
    if wanted == _BOOL and source.kind not in "iub":
        return None  # `any` and `all` treat fractions as true, which a conversion would truncate
    target = _FLOAT32 if wanted in _HALVES else _INT64 if wanted.kind in "iub" else wanted
    given = _FLOAT32 if source in _HALVES else _INT64 if source.kind in "iub" else source
    return (source if given == target else target), target


def to_row_major(array: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the elements row-major, with `axes` adjacent and the other dimensions in their order.

    A view in memory order if that suffices; otherwise a copy.
    """
    if array.flags.c_contiguous and _side_by_side(array.shape, axes):
        return array, axes
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    kept = [axis for axis in order if axis not in axes]
    seen = array.transpose(order)
    positions = tuple(order.index(axis) for axis in axes)
    if kept == sorted(kept) and seen.flags.c_contiguous and _side_by_side(seen.shape, positions):
        return seen, positions
    outer = [axis for axis in range(array.ndim) if axis not in axes]
    moved = array.transpose([*outer, *axes])
    copy = native.scratch(moved.shape, array.dtype)
    native.assign(copy, moved)
    return copy, tuple(range(len(outer), array.ndim))


def _side_by_side(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    reduced = [axis in axes for axis, size in enumerate(shape) if size != 1]
    return sum(now != before for now, before in zip(reduced, [False, *reduced], strict=False)) <= 2


def reduce(operation: int, array: np.ndarray, axes: tuple[int, ...], out: np.ndarray, mean: np.ndarray | None = None) -> bool:
    """Write the reduction of `array` over `axes` to `out`, which is row-major; False if it is not supported.

    Integers sum in int64, 16-bit floats in float32. `mean`, for DEVIATION and OFFSET, has the size of `out`.
    """
    extra = () if mean is None else (mean,)
    if native.kernels is None:
        return False
    if native.kernels.reduce(operation, out, array, axes, *extra):  # the common case, without a conversion
        return True
    if not array.size or not out.flags.c_contiguous:
        return False
    kinds = _kernel_dtypes(operation, array.dtype, out.dtype)
    if kinds is None:
        return False
    source, result = kinds
    found = to_row_major(array, axes)
    if found[0].dtype != source:
        converted = native.converted(found[0], source)
        if converted is None:
            return False
        found = converted, found[1]
    target = out if out.dtype == result else np.empty(out.shape, result)
    if not native.kernels.reduce(operation, target, *found, *extra):
        return False
    if target is not out:
        native.assign(out, target)
    return True
