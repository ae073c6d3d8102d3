"""CPU kernels of adaptive pooling: native ones, and NumPy by rows and then columns, one pass per element of the longest
window."""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import empty, operand
from rushlight.ops.meta.adaptive_pooling import check_backward, check_max_backward, longest_window, pooled_sizes
from rushlight.ops.meta.checks import is_channels_last, kept_format_strides
from rushlight.ops.registry import cpu

_MAX, _MEAN, _MEAN_BACKWARD = range(3)  # kinds of the native kernel
Sizes = tuple[int, ...]


def lies_last(tensor: Tensor) -> bool:
    """Return whether images lie channels-last."""
    return tensor.dim() == 4 and is_channels_last(tensor)


def _in_memory(array: np.ndarray, last: bool) -> np.ndarray:
    """View images as [..., height, width], or as [batch, height, width, channels] if they are channels-last."""
    return array.transpose(0, 2, 3, 1) if last else array


def _result(sizes: Sizes, like: Tensor) -> Tensor:
    return empty(sizes, like.dtype, kept_format_strides(sizes, like))


def _geometry(sizes: Sizes, pooled: Sizes, last: bool) -> Sizes:
    channels = sizes[1] if last else 1
    return (math.prod(sizes[:-2]) // channels, *sizes[-2:], channels, *pooled[-2:])


def _run_native(kind: int, out: Tensor, positions: Tensor | None, x: np.ndarray, geometry: Sizes, last: bool) -> bool:
    """Run the native kernel; False if it does not support the arguments."""
    if native.kernels is None or x.dtype not in (np.float32, np.float64):
        return False
    target = _in_memory(out._impl.array, last)
    values = target if target.dtype == x.dtype else native.scratch(target.shape, x.dtype)
    found = None if positions is None else _in_memory(positions._impl.array, last)
    if not native.kernels.adaptive_pool(kind, values, found, native.contiguous(_in_memory(x, last)), geometry):
        return False
    if values is not target:
        native.assign(target, values)
    return True


# Windows of the NumPy kernels


def _windows(inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the start and the end of each window."""
    index = np.arange(outputs)
    return index * inputs // outputs, -(-(index + 1) * inputs // outputs)


def _taps(x: np.ndarray, axis: int, outputs: int):
    """Yield, for each position in the longest window, the elements there and which windows have one. Shorter windows repeat
    their last element."""
    starts, ends = _windows(x.shape[axis], outputs)
    for tap in range(longest_window(x.shape[axis], outputs)):
        chosen = np.take(x, np.minimum(starts + tap, ends - 1), axis)
        yield chosen, (starts + tap < ends).reshape([-1] + [1] * (-1 - axis))


def _sum_windows(x: np.ndarray, axis: int, outputs: int) -> np.ndarray:
    return sum(np.where(inside, values, x.dtype.type(0)) for values, inside in _taps(x, axis, outputs))


def _lengths(sizes: Sizes, pooled: Sizes) -> np.ndarray:
    """Return the number of elements in each window, [height, width]."""
    spans = (_windows(*extents) for extents in zip(sizes[-2:], pooled[-2:], strict=True))
    high, wide = (ends - starts for starts, ends in spans)
    return high[:, None] * wide


@cpu("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(self, output_size):
    sizes, pooled = self._impl.sizes, pooled_sizes(self, output_size, "adaptive_avg_pool2d")
    out = _result(pooled, self)
    if not out.numel():
        return out
    x, last = operand(self, self.dtype), lies_last(self)
    if not _run_native(_MEAN, out, None, x, _geometry(sizes, pooled, last), last):
        with np.errstate(all="ignore"):
            total = _sum_windows(_sum_windows(x, -2, pooled[-2]), -1, pooled[-1])
            native.assign(out._impl.array, total / _lengths(sizes, pooled).astype(x.dtype))
    return out


@cpu("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(grad_output, self):
    check_backward(grad_output, self, "adaptive_avg_pool2d_backward")
    sizes, pooled = self._impl.sizes, grad_output._impl.sizes
    out = _result(sizes, self)
    if not grad_output.numel():
        out._impl.array[...] = 0
        return out
    grad, last = operand(grad_output, grad_output.dtype), lies_last(self)
    if not _run_native(_MEAN_BACKWARD, out, None, grad, _geometry(sizes, pooled, last), last):
        # The windows that contain an element are those of an adaptive pool in the reverse direction.
        with np.errstate(all="ignore"):
            shares = grad / _lengths(sizes, pooled).astype(grad.dtype)
            native.assign(out._impl.array, _sum_windows(_sum_windows(shares, -1, sizes[-1]), -2, sizes[-2]))
    return out


def _largest(values: np.ndarray, positions: np.ndarray, axis: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum of each window and its index: the first maximum, or the last NaN."""
    pairs = zip(_taps(values, axis, outputs), _taps(positions, axis, outputs), strict=True)
    (best, _), (where, _) = next(pairs)
    for (value, _), (position, _) in pairs:
        better = (value > best) | np.isnan(value)
        np.copyto(best, value, where=better)
        np.copyto(where, position, where=better)
    return best, where


@cpu("adaptive_max_pool2d")
def adaptive_max_pool2d(self, output_size):
    sizes, pooled = self._impl.sizes, pooled_sizes(self, output_size, "adaptive_max_pool2d")
    out = _result(pooled, self)
    where = empty(pooled, int64, kept_format_strides(pooled, self))
    if not out.numel():
        return out, where
    x, last = operand(self, self.dtype), lies_last(self)
    if not _run_native(_MAX, out, where, x, _geometry(sizes, pooled, last), last):
        positions = np.broadcast_to(np.arange(math.prod(sizes[-2:])).reshape(sizes[-2:]), sizes)
        values, positions = _largest(*_largest(x, positions, -1, pooled[-1]), -2, pooled[-2])
        native.assign(out._impl.array, values)
        where._impl.array[...] = positions
    return out, where


@cpu("adaptive_max_pool2d_backward")
def adaptive_max_pool2d_backward(grad_output, self, indices):
    check_max_backward(grad_output, self, indices)
    out = _result(self._impl.sizes, self)
    if not grad_output.numel():
        out._impl.array[...] = 0
        return out
    grad = operand(grad_output, grad_output.dtype)
    scatter_planes(out, grad, indices._impl.array, lies_last(self), "adaptive_max_pool2d_backward")
    return out


def scatter_planes(out: Tensor, grad: np.ndarray, positions: np.ndarray, last: bool, name: str) -> None:
    """Scatter-add gradients to their indices in planes of zeros, channels-last or not. RuntimeError, which names the operator
    `name`, for an index out of range."""
    if _scatter_native(out, grad, positions, last):
        return
    plane = math.prod(out._impl.sizes[-2:])
    if positions.size and not 0 <= positions.min() <= positions.max() < plane:
        raise RuntimeError(f"{name}: expected indices in [0, {plane}), but got {positions.min()} to {positions.max()}")
    rows = positions.reshape(-1, math.prod(grad.shape[-2:]))
    total = np.bincount((rows + np.arange(len(rows))[:, None] * plane).ravel(), grad.ravel(), out.numel())
    native.assign(out._impl.array, total.reshape(out._impl.sizes))


def _scatter_native(out: Tensor, grad: np.ndarray, positions: np.ndarray, last: bool) -> bool:
    """Run the native kernel; False if it does not support the arguments or an index is out of range."""
    if native.kernels is None or grad.dtype not in (np.float32, np.float64):
        return False
    target = _in_memory(out._impl.array, last)
    total = target if target.dtype == grad.dtype else native.scratch(target.shape, grad.dtype)
    sources = (native.contiguous(_in_memory(source, last)) for source in (grad, positions))
    planes, height, width, channels, *_ = _geometry(out._impl.sizes, (0, 0), last)
    outputs = math.prod(grad.shape[-2:])
    if not native.kernels.max_pool_backward(total, *sources, (planes, outputs, height * width, channels)):
        return False
    if total is not target:
        native.assign(target, total)
    return True
