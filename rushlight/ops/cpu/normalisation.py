"""CPU kernels of layer and batch normalisation with their gradients, and of dropout."""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.dtype import bool_, dtype, float32
from rushlight.core.generator import default_generator
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import convert, empty, make, operand
from rushlight.ops.cpu.random import fill_bernoulli
from rushlight.ops.cpu.results import by_strides, contiguous
from rushlight.ops.meta.checks import kept_format_strides
from rushlight.ops.meta.normalisation import (
    batch_statistics,
    check_batch_norm,
    check_dropout,
    check_layer_norm,
    statistics_dtype,
)
from rushlight.ops.meta.sorting import kept_strides
from rushlight.ops.registry import cpu


def _wide(tensor: Tensor | None, like: np.ndarray) -> np.ndarray | None:
    """Return a parameter or statistic in the dtype in which kernels compute `like`."""
    return None if tensor is None else tensor._impl.array.astype(like.dtype, copy=False)


@cpu("native_layer_norm")
def layer_norm(input, normalized_shape, weight, bias, eps):
    sizes, kind = check_layer_norm(input, normalized_shape, weight, bias), statistics_dtype(input, weight, bias)
    width = math.prod(normalized_shape)
    out = empty(input._impl.sizes, input.dtype)
    x = np.empty((0, width), input.dtype.compute)
    if input.numel():
        x = native.contiguous(operand(input, input.dtype)).reshape(-1, width)
    rows = math.prod(sizes)
    if not input.numel():
        # There is nothing to normalise, but empty rows still have statistics.
        rstd = np.full(sizes, 1 / math.sqrt(eps) if eps else np.inf)
        return out, contiguous(np.zeros(sizes), kind), contiguous(rstd, kind)
    found = _native_layer_norm(out, x, sizes, kind, weight, bias, eps)
    if found is not None:
        return found
    with np.errstate(all="ignore"):
        mean = x.mean(axis=1, keepdims=True)
        normal = x - mean
        # A row's product with itself sums the squares without storing them.
        variance = np.einsum("ij,ij->i", normal, normal).reshape(rows, 1) / x.dtype.type(width)
        rstd = 1 / np.sqrt(variance + x.dtype.type(eps))
        normal *= rstd
        if weight is not None:
            normal *= _wide(weight, x).reshape(-1)
        if bias is not None:
            normal += _wide(bias, x).reshape(-1)
    out._impl.array[...] = normal.reshape(out._impl.sizes)
    return out, contiguous(mean.reshape(sizes), kind), contiguous(rstd.reshape(sizes), kind)


def _native_layer_norm(
    out: Tensor, x: np.ndarray, sizes: tuple, kind: dtype, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return the result, mean and reciprocal deviation by the native kernel, or None where it does not support the
    arguments."""
    if native.kernels is None or x.dtype != np.float32:
        return None
    values = out._impl.array if out.dtype is float32 else native.scratch(out._impl.sizes, x.dtype)
    mean, rstd = empty(sizes, float32), empty(sizes, float32)
    scale, shift = (None if p is None else native.contiguous(_wide(p, x)) for p in (weight, bias))
    done = native.kernels.layer_norm(
        values, mean._impl.array, rstd._impl.array, native.contiguous(x), scale, shift, float(eps)
    )
    if not done:
        return None
    if values is not out._impl.array:
        native.assign(out._impl.array, values)
    if kind is not float32:
        mean, rstd = (make(statistic._impl.array, kind) for statistic in (mean, rstd))
    return out, mean, rstd


def _native_layer_norm_backward(
    grad: np.ndarray, x: np.ndarray, center: np.ndarray, scale: np.ndarray, weight: Tensor | None, wanted: list[bool]
) -> tuple[np.ndarray | None, ...] | None:
    """Return the wanted gradients of input, weight and bias, or None where the native kernel does not support the arguments."""
    if native.kernels is None or x.dtype != np.float32:
        return None
    shapes = (x.shape, x.shape[1:], x.shape[1:])
    made = [native.scratch(shape, x.dtype) if want else None for shape, want in zip(shapes, wanted, strict=True)]
    arrays = (native.contiguous(array) for array in (grad, x, center, scale))
    factors = None if weight is None else native.contiguous(_wide(weight, x))
    return tuple(made) if native.kernels.layer_norm_backward(*made, *arrays, factors) else None


@cpu("native_layer_norm_backward")
def layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    check_layer_norm(input, normalized_shape, weight, bias)
    width = math.prod(normalized_shape)
    x, grad = operand(input, input.dtype), operand(grad_out, input.dtype)
    rows = math.prod(input._impl.sizes[: input.dim() - len(normalized_shape)])
    if (grad.size, mean.numel(), rstd.numel()) != (x.size, rows, rows):
        raise RuntimeError(
            f"native_layer_norm_backward: expected grad_out of shape {list(x.shape)}, and mean and rstd of {rows} elements, "
            f"but got {list(grad.shape)}, {list(mean.shape)} and {list(rstd.shape)}"
        )
    x, grad = x.reshape(rows, width), grad.reshape(rows, width)
    center, scale = _wide(mean, x).reshape(rows, 1), _wide(rstd, x).reshape(rows, 1)
    wanted = [output_mask[0], output_mask[1] and weight is not None, output_mask[2] and bias is not None]
    found = _native_layer_norm_backward(grad, x, center, scale, weight, wanted)
    if found is not None:
        shapes = (input._impl.sizes, tuple(normalized_shape), tuple(normalized_shape))
        kinds = (input.dtype, weight.dtype if wanted[1] else None, statistics_dtype(input, weight, bias))
        return tuple(
            None if array is None else contiguous(array.reshape(shape), kind)
            for array, shape, kind in zip(found, shapes, kinds, strict=True)
        )
    with np.errstate(all="ignore"):
        normal = (x - center) * scale
        to_input = to_weight = to_bias = None
        if output_mask[0]:
            inner = grad if weight is None else grad * _wide(weight, x).reshape(-1)
            moved = inner - _mean(inner, 1) - normal * _mean(inner * normal, 1)
            to_input = contiguous((moved * scale).reshape(input._impl.sizes), input.dtype)
        if output_mask[1] and weight is not None:
            to_weight = contiguous((grad * normal).sum(axis=0).reshape(normalized_shape), weight.dtype)
        if output_mask[2] and bias is not None:
            kind = statistics_dtype(input, weight, bias)
            to_bias = contiguous(grad.sum(axis=0).reshape(normalized_shape), kind)
    return to_input, to_weight, to_bias


def _mean(values: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    count = math.prod(values.shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))
    return values.sum(axis=axes, keepdims=True) / values.dtype.type(count)


def _other_axes(x: np.ndarray) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _per_channel(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    return values.reshape(1, -1, *(1,) * (x.ndim - 2))


# With shorter rows, NumPy is faster than the kernels at sums over images and pixels.
_MIN_ROW = 16


def _by_channel(x: np.ndarray) -> np.ndarray | None:
    """Return `x` row-major for the native kernels, or None where they are no faster."""
    if native.kernels is None or x.dtype != np.float32 or not x.size or math.prod(x.shape[2:]) < _MIN_ROW:
        return None
    return native.contiguous(x)


def _flat(statistic: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(statistic, np.float32).reshape(-1)


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of each channel, shaped to broadcast."""
    rows = _by_channel(x)
    mean, variance = np.empty(x.shape[1], x.dtype), np.empty(x.shape[1], x.dtype)
    if rows is not None and native.kernels.channel_moments(mean, variance, rows):
        return _per_channel(mean, x), _per_channel(variance, x)
    wide = _mean(x, _other_axes(x))
    return wide, _mean(np.square(x - wide), _other_axes(x))


def _normalise(
    x: np.ndarray, mean: np.ndarray, invstd: np.ndarray, weight: Tensor | None, bias: Tensor | None
) -> np.ndarray:
    scale = invstd if weight is None else invstd * _per_channel(_wide(weight, x), x)
    shift = 0 if bias is None else _per_channel(_wide(bias, x), x)
    rows = _by_channel(x)
    if rows is not None:
        out = native.scratch(x.shape, x.dtype)
        if native.kernels.channel_affine(out, rows, _flat(scale), _flat(shift - mean * scale), None, None):
            return out
    return (x - mean) * scale + shift


def _products(x: np.ndarray, grad: np.ndarray, mean: np.ndarray, invstd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, per channel, the sum of the gradient times the normalised values, and the sum of the gradient."""
    rows = _by_channel(x)
    if rows is not None:
        total, product = np.empty(x.shape[1], x.dtype), np.empty(x.shape[1], x.dtype)
        if native.kernels.channel_products(total, product, rows, native.contiguous(grad), _flat(mean)):
            return product * invstd.reshape(-1), total
    normal, axes = (x - mean) * invstd, _other_axes(x)
    return (grad * normal).sum(axis=axes), grad.sum(axis=axes)


def _input_gradient(
    x: np.ndarray, grad: np.ndarray, mean: np.ndarray, invstd: np.ndarray, scale: np.ndarray, train: bool,
    products: np.ndarray, total: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Return the input's gradient: scale * (g - mean(g) - n * mean(g * n)) with n the normalised values; scale * g in
    evaluation mode."""
    count = x.dtype.type(x.size // x.shape[1])
    slope = -invstd * _per_channel(products, x) / count if train else np.zeros_like(invstd)
    offset = -_per_channel(total, x) / count - mean * slope if train else np.zeros_like(invstd)
    rows = _by_channel(x)
    if rows is not None:
        out = native.scratch(x.shape, x.dtype)
        factors = _flat(np.broadcast_to(scale, invstd.shape))
        if native.kernels.channel_affine(
            out, rows, _flat(slope * scale), _flat(offset * scale), native.contiguous(grad), factors
        ):
            return out
    return (grad + x * slope + offset) * scale


@cpu("native_batch_norm")
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    channels = check_batch_norm(input, weight, bias, running_mean, running_var, training)
    x = operand(input, input.dtype)
    with np.errstate(all="ignore"):
        if training:
            mean, variance = _moments(x)
            _update_running(running_mean, running_var, mean, variance, momentum, x.size // max(channels, 1))
        else:
            mean, variance = _per_channel(_wide(running_mean, x), x), _per_channel(_wide(running_var, x), x)
        invstd = 1 / np.sqrt(variance + x.dtype.type(eps))
        values = _normalise(x, mean, invstd, weight, bias)
    out = by_strides(values, input.dtype, kept_format_strides(x.shape, input))
    count, kind = batch_statistics(input, channels, training, weight, bias)
    return out, contiguous(mean.reshape(-1)[:count], kind), contiguous(invstd.reshape(-1)[:count], kind)


@cpu("_native_batch_norm_legit_no_training")
def batch_norm_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    return batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


def _update_running(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: np.ndarray,
    variance: np.ndarray,
    momentum: float,
    count: int,
) -> None:
    """Move the running statistics towards the batch's, with the unbiased variance.

    Their version counters stay, as in torch: several forward passes may come before one backward pass, which needs the
    statistics only in evaluation mode.
    """
    unbiased = variance * variance.dtype.type(count) / variance.dtype.type(count - 1)
    for running, batch in ((running_mean, mean), (running_var, unbiased)):
        if running is not None:
            array = running._impl.array
            moved = momentum * batch.reshape(array.shape) + (1 - momentum) * array.astype(batch.dtype)
            array[...] = convert(moved, array.dtype)
            running._impl.storage.generation += 1  # compiled code may contain the old values as constants


@cpu("native_batch_norm_backward")
def batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):  # fmt: skip
    check_batch_norm(input, weight, None, running_mean, running_var, train)
    x, grad, kind = operand(input, input.dtype), operand(grad_out, input.dtype), statistics_dtype(input, weight)
    if None in ((save_mean, save_invstd) if train else (running_mean, running_var)):
        raise RuntimeError(f"native_batch_norm_backward: the mean or the variance for {train=} was not given")
    with np.errstate(all="ignore"):
        if train:
            mean, invstd = _wide(save_mean, x), _wide(save_invstd, x)
        else:
            mean, invstd = _wide(running_mean, x), 1 / np.sqrt(_wide(running_var, x) + x.dtype.type(eps))
        mean, invstd = _per_channel(mean, x), _per_channel(invstd, x)
        to_weight, to_bias = _products(x, grad, mean, invstd)
        to_input = None
        if output_mask[0]:
            to_input = empty(x.shape, input.dtype, kept_format_strides(x.shape, input))
            scale = invstd if weight is None else invstd * _per_channel(_wide(weight, x), x)
            native.assign(
                to_input._impl.array, _input_gradient(x, grad, mean, invstd, scale, train, to_weight, to_bias)
            )
    return (
        to_input,
        contiguous(to_weight, kind) if output_mask[1] else None,
        contiguous(to_bias, kind) if output_mask[2] else None,
    )


@cpu("native_dropout")
def native_dropout(input, p, train):
    check_dropout(input, p)
    sizes, strides = input._impl.sizes, kept_strides(input)
    out, mask = empty(sizes, input.dtype, strides), empty(sizes, bool_, strides)
    if train is False:
        mask._impl.array[...] = True
        out._impl.array[...] = input._impl.array
        return out, mask
    # Only the number and order of the draws matter, which follow a tensor of the input's dtype.
    fill_bernoulli(mask, 1 - p, default_generator)
    x = operand(input, input.dtype)
    scale = x.dtype.type(0 if p == 1 else 1 / (1 - p))
    with np.errstate(all="ignore"):
        out._impl.array[...] = x * mask._impl.array * scale
    return out, mask
