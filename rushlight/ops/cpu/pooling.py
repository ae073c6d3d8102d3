"""CPU kernels of 2-dimensional pooling: one pass over the output per position of the window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rushlight.core.dtype import dtype, int64
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.adaptive_pooling import lies_last, scatter_planes
from rushlight.ops.cpu.common import empty, operand
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.checks import kept_format_strides
from rushlight.ops.meta.pooling import Window, check_divisor, check_pool_backward, make_windows, pooled_sizes, require_poolable
from rushlight.ops.registry import cpu

Windows = tuple[Window, Window]


def _pad(x: np.ndarray, windows: Windows, fill: float) -> np.ndarray:
    pads = [(window.padding, window.padding_after) for window in windows]
    if not any(map(any, pads)):
        return x
    return np.pad(x, [(0, 0)] * (x.ndim - 2) + pads, constant_values=x.dtype.type(fill))


def _positions(windows: Windows) -> Iterator[tuple[int, int, tuple]]:
    """Yield each position in the window, with the index of the padded elements under it."""
    height, width = windows
    for row in range(height.size):
        for column in range(width.size):
            yield row, column, (..., _slice_under(height, row), _slice_under(width, column))


def _slice_under(window: Window, position: int) -> slice:
    first = position * window.dilation
    return slice(first, first + (window.outputs - 1) * window.stride + 1, window.stride)


def _coordinates(window: Window, position: int) -> np.ndarray:
    """Return for each output the input coordinate under `position` of its window; it is outside of the input in the padding."""
    return np.arange(window.outputs) * window.stride - window.padding + position * window.dilation


def _first_inside(window: Window) -> np.ndarray:
    """Return for each window the input coordinate of its first element that is not padding."""
    start = _coordinates(window, 0)
    steps = -(np.minimum(start, 0) // window.dilation)
    return start + steps * window.dilation


def _native_max_pool(self: Tensor, x: np.ndarray, windows: Windows) -> tuple[Tensor, Tensor] | None:
    """Return the maxima and their indices, or None where there is no kernel."""
    if native.kernels is None or x.dtype != np.float32:
        return None
    height, width = windows
    names = ("size", "stride", "padding", "dilation")
    geometry = tuple(getattr(window, name) for name in names for window in (height, width))
    sizes = pooled_sizes(self, windows)
    best, where = native.scratch(sizes, x.dtype), native.scratch(sizes, np.dtype(np.int64))
    if not native.kernels.max_pool(best, where, native.contiguous(x), geometry):
        return None
    return _store(best, self), _store(where, self, int64)


@cpu("max_pool2d_with_indices")
def max_pool2d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    windows = make_windows(self, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d")
    x = operand(self, self.dtype)
    found = _native_max_pool(self, x, windows)
    if found is not None:
        return found
    lowest = -np.inf if x.dtype.kind == "f" else 0 if x.dtype.kind == "b" else np.iinfo(x.dtype).min
    has_nan = x.dtype.kind == "f" and bool(np.isnan(x.max(initial=lowest)))
    x = _pad(x, windows, lowest)
    sizes = pooled_sizes(self, windows)
    height, width = windows
    best = np.full(sizes, lowest, x.dtype)
    where = np.empty(sizes, np.int64)
    where[...] = _first_inside(height)[:, None] * width.inputs + _first_inside(width)
    for row, column, met in _positions(windows):
        candidate = x[met]
        better = candidate > best
        if has_nan:
            better |= np.isnan(candidate)
        np.copyto(best, candidate, where=better)
        index = _coordinates(height, row)[:, None] * width.inputs + _coordinates(width, column)
        np.copyto(where, index, where=better)
    strides = kept_format_strides(sizes, self)
    out, indices = empty(sizes, self.dtype, strides), empty(sizes, int64, strides)
    out._impl.array[...], indices._impl.array[...] = best, where
    return out, indices


@cpu("max_pool2d_with_indices_backward")
def max_pool2d_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    name = "max_pool2d_backward"
    windows = make_windows(self, kernel_size, stride, padding, dilation, ceil_mode, name)
    check_pool_backward(grad_output, self, windows, name)
    sizes = self._impl.sizes
    out = empty(sizes, grad_output.dtype, kept_format_strides(sizes, self))
    if not out.numel():
        return out
    scatter_planes(out, operand(grad_output, grad_output.dtype), indices._impl.array, lies_last(self), name)
    return out


def _divisors(windows: Windows, count_include_pad: bool, divisor_override: int | None) -> np.ndarray | int:
    """Return the divisor of each output's sum, (height, width)."""
    if divisor_override is not None:
        return divisor_override
    height, width = (_lengths(window, count_include_pad) for window in windows)
    return height[:, None] * width


def _lengths(window: Window, count_include_pad: bool) -> np.ndarray:
    start = _coordinates(window, 0)
    end = np.minimum(start + window.size, window.inputs + window.padding)
    return end - start if count_include_pad else np.minimum(end, window.inputs) - np.maximum(start, 0)


@cpu("avg_pool2d")
def avg_pool2d(
    self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):  # fmt: skip
    check_divisor(divisor_override)
    require_poolable("avg_pool2d", self)
    windows = make_windows(self, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d")
    sizes = pooled_sizes(self, windows)
    x = _pad(operand(self, self.dtype), windows, 0)
    total = np.zeros(sizes, x.dtype)
    with np.errstate(all="ignore"):
        for _, _, met in _positions(windows):
            total += x[met]
        divisors = np.asarray(_divisors(windows, count_include_pad, divisor_override), x.dtype)
        if x.dtype.kind == "f":
            total /= divisors
        else:
            # Integer division rounds towards zero.
            total = np.abs(total) // np.abs(divisors) * np.sign(total) * np.sign(divisors)
    return _store(total, self)


def _store(values: np.ndarray, like: Tensor, kind: dtype | None = None) -> Tensor:
    kind, strides = kind or like.dtype, kept_format_strides(values.shape, like)
    if values.dtype == kind.numpy and strides in (None, contiguous_strides(values.shape)):
        return contiguous(values, kind)
    out = empty(values.shape, kind, strides)
    native.assign(out._impl.array, values)
    return out


@cpu("avg_pool2d_backward")
def avg_pool2d_backward(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):  # fmt: skip
    check_divisor(divisor_override)
    name = "avg_pool2d_backward"
    windows = make_windows(self, kernel_size, stride, padding, 1, ceil_mode, name)
    check_pool_backward(grad_output, self, windows, name)
    grad = operand(grad_output, grad_output.dtype)
    share = grad / np.asarray(_divisors(windows, count_include_pad, divisor_override), grad.dtype)
    height, width = windows
    whole = [window.padding + window.inputs + window.padding_after for window in windows]
    total = np.zeros((*grad.shape[:-2], *whole), grad.dtype)
    for _, _, met in _positions(windows):
        total[met] += share
    inner = total[..., height.padding : height.padding + height.inputs, width.padding : width.padding + width.inputs]
    return _store(inner, self)
