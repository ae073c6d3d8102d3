"""CPU kernels of convolution and its gradients: im2col and one matrix product per image and group.

Three linear maps suffice: from input to output (`_forward`), its adjoint (`_adjoint`), and the gradient of the kernel
(`_kernel_gradient`). A transposed convolution is the adjoint of a plain one.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native_convolution
from rushlight.ops.cpu.common import operand
from rushlight.ops.cpu.reductions import sum_
from rushlight.ops.cpu.results import by_strides
from rushlight.ops.meta.checks import kept_format_strides
from rushlight.ops.meta.convolution import Geometry, check_convolution, check_convolution_backward, make_geometry
from rushlight.ops.registry import cpu


def _pad_with_zeros(x: np.ndarray, padding: tuple[int, ...]) -> np.ndarray:
    if not any(padding):
        return x
    sizes = [size + 2 * pad for size, pad in zip(x.shape[2:], padding, strict=True)]
    result = np.zeros((*x.shape[:2], *sizes), x.dtype)
    result[(..., *(slice(pad, pad + size) for pad, size in zip(padding, x.shape[2:], strict=True)))] = x
    return result


def _windows(x: np.ndarray, kernel: tuple[int, ...], sizes: tuple[int, ...], geometry: Geometry) -> np.ndarray:
    """Return a view (images, channels, *kernel, *sizes) of a padded array: the values under each tap."""
    spatial = x.strides[2:]
    taps = tuple(step * spread for step, spread in zip(spatial, geometry.dilation, strict=True))
    steps = tuple(step * stride for step, stride in zip(spatial, geometry.stride, strict=True))
    shape = (*x.shape[:2], *kernel, *sizes)
    return np.lib.stride_tricks.as_strided(x, shape, (*x.strides[:2], *taps, *steps), writeable=False)


def _tap(offsets: tuple[int, ...], sizes: tuple[int, ...], geometry: Geometry) -> tuple:
    """Return the index of the padded values under the tap at `offsets`."""
    parts = zip(offsets, sizes, geometry.stride, geometry.dilation, strict=True)
    return (..., *(slice(o * spread, o * spread + (size - 1) * step + 1, step) for o, size, step, spread in parts))


def _is_depthwise(kernel: np.ndarray, groups: int) -> bool:
    return groups > 1 and kernel.shape[1] == 1 and kernel.shape[0] == groups


def _per_channel(values: np.ndarray, rank: int) -> np.ndarray:
    return values.reshape(-1, *(1,) * rank)


def _forward(
    x: np.ndarray, kernel: np.ndarray, bias: np.ndarray | None, sizes: tuple[int, ...], geometry: Geometry
) -> np.ndarray:
    """Return the convolution of `x` (images, channels, ...) with `kernel` (outputs, channels / groups, ...)."""
    made = native_convolution.forward(x, kernel, bias, sizes, geometry)
    return _add_bias(_plain_forward(x, kernel, sizes, geometry), bias) if made is None else made


def _add_bias(values: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    if bias is not None:
        values += _per_channel(bias, values.ndim - 2)
    return values


def _plain_forward(x: np.ndarray, kernel: np.ndarray, sizes: tuple[int, ...], geometry: Geometry) -> np.ndarray:
    taps, groups, rank = kernel.shape[2:], geometry.groups, kernel.ndim - 2
    x = _pad_with_zeros(x, geometry.padding)
    out = np.zeros((x.shape[0], kernel.shape[0], *sizes), x.dtype)
    if _is_depthwise(kernel, groups):
        for offsets in product(*map(range, taps)):
            out += x[_tap(offsets, sizes, geometry)] * _per_channel(kernel[(slice(None), 0, *offsets)], rank)
        return out
    windows = _windows(x, taps, sizes, geometry)
    matrices = kernel.reshape(groups, kernel.shape[0] // groups, -1)
    for image, result in zip(windows, out, strict=True):
        columns = image.reshape(groups, matrices.shape[2], -1)
        np.matmul(matrices, columns, out=result.reshape(groups, matrices.shape[1], -1))
    return out


def _adjoint(
    y: np.ndarray, kernel: np.ndarray, bias: np.ndarray | None, sizes: tuple[int, ...], geometry: Geometry
) -> np.ndarray:
    """Return the gradient of the input (of spatial `sizes`) for the output's gradient `y`, which is also a transposed
    convolution."""
    made = native_convolution.input_gradient(y, kernel, bias, sizes, geometry)
    return _add_bias(_plain_adjoint(y, kernel, sizes, geometry), bias) if made is None else made


def _plain_adjoint(y: np.ndarray, kernel: np.ndarray, sizes: tuple[int, ...], geometry: Geometry) -> np.ndarray:
    taps, groups, rank = kernel.shape[2:], geometry.groups, kernel.ndim - 2
    whole = [size + 2 * pad for size, pad in zip(sizes, geometry.padding, strict=True)]
    total = np.zeros((y.shape[0], kernel.shape[1] * groups, *whole), y.dtype)
    if _is_depthwise(kernel, groups):
        for offsets in product(*map(range, taps)):
            total[_tap(offsets, y.shape[2:], geometry)] += y * _per_channel(kernel[(slice(None), 0, *offsets)], rank)
    else:
        _add_columns(total, y, kernel, geometry)
    inner = (slice(pad, pad + size) for pad, size in zip(geometry.padding, sizes, strict=True))
    return total[(..., *inner)]


def _add_columns(total: np.ndarray, y: np.ndarray, kernel: np.ndarray, geometry: Geometry) -> None:
    taps, groups = kernel.shape[2:], geometry.groups
    matrices = kernel.reshape(groups, kernel.shape[0] // groups, -1).transpose(0, 2, 1)
    for image, result in zip(y, total, strict=True):
        columns = np.matmul(matrices, image.reshape(groups, matrices.shape[2], -1))
        columns = columns.reshape(total.shape[1], *taps, *y.shape[2:])
        for offsets in product(*map(range, taps)):
            result[_tap(offsets, y.shape[2:], geometry)] += columns[(slice(None), *offsets)]


def _kernel_gradient(x: np.ndarray, y: np.ndarray, shape: tuple[int, ...], geometry: Geometry) -> np.ndarray:
    """Return the gradient of a kernel of `shape`, for the input `x` and the output's gradient `y`."""
    made = native_convolution.kernel_gradient(x, y, shape, geometry)
    if made is not None:
        return made
    groups, sizes = geometry.groups, y.shape[2:]
    x = _pad_with_zeros(x, geometry.padding)
    total = np.zeros(shape, x.dtype)
    if _is_depthwise(total, groups):
        for offsets in product(*map(range, shape[2:])):
            met = x[_tap(offsets, sizes, geometry)]
            total[(slice(None), 0, *offsets)] = (met * y).sum(axis=(0, *range(2, y.ndim)))
        return total
    windows = _windows(x, shape[2:], sizes, geometry)
    matrices = total.reshape(groups, shape[0] // groups, -1)
    for image, grad in zip(windows, y, strict=True):
        columns = image.reshape(groups, matrices.shape[2], -1)
        matrices += np.matmul(grad.reshape(groups, matrices.shape[1], -1), columns.transpose(0, 2, 1))
    return total


def _is_empty(values: np.ndarray, kernel: np.ndarray) -> bool:
    return not values.size or not kernel.size


@cpu("convolution")
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    geometry = make_geometry(weight.dim() - 2, stride, padding, dilation, transposed, output_padding, groups)
    sizes = check_convolution(input, weight, bias, geometry)
    x, kernel = operand(input, input.dtype), operand(weight, input.dtype)
    shift = None if bias is None else operand(bias, input.dtype)
    with np.errstate(all="ignore"):
        if _is_empty(x, kernel) or 0 in sizes:
            values = _add_bias(np.zeros(sizes, x.dtype), shift)
        else:
            values = (_adjoint if transposed else _forward)(x, kernel, shift, sizes[2:], geometry)
    return by_strides(values, input.dtype, kept_format_strides(sizes, input, weight))


@cpu("convolution_backward")
def convolution_backward(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):  # fmt: skip
    geometry = make_geometry(weight.dim() - 2, stride, padding, dilation, transposed, output_padding, groups)
    check_convolution_backward(grad_output, input, weight, geometry)
    kind = input.dtype
    y, x, kernel = operand(grad_output, kind), operand(input, kind), operand(weight, kind)
    nothing = _is_empty(x, kernel) or not y.size
    grads: list[Tensor | None] = [None, None, None]
    with np.errstate(all="ignore"):
        if output_mask[0]:
            to_input = _forward if transposed else _adjoint
            values = np.zeros(x.shape, x.dtype) if nothing else to_input(y, kernel, None, x.shape[2:], geometry)
            grads[0] = by_strides(values, input.dtype, kept_format_strides(x.shape, input, weight))
        if output_mask[1]:
            ends = (y, x) if transposed else (x, y)
            values = np.zeros(kernel.shape, x.dtype) if nothing else _kernel_gradient(*ends, kernel.shape, geometry)
            grads[1] = by_strides(values, weight.dtype, kept_format_strides(kernel.shape, input, weight))
        if output_mask[2]:
            grads[2] = sum_(grad_output, [0, *range(2, y.ndim)])
    return tuple(grads)
