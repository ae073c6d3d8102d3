"""Functions of quantized tensors: `torch.ao.nn.quantized.functional`. Weights are quantized tensors, packed at every call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from rushlight.core.dtype import dtype, qint8, quint8
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.common import as_tuple
from rushlight.ops.packet import namespaces

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu", "clamp", "conv1d", "conv2d", "conv3d",
    "elu", "hardsigmoid", "hardswish", "hardtanh", "interpolate", "leaky_relu", "linear", "max_pool1d", "max_pool2d",
    "threshold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

quantized = namespaces.namespace("quantized")

Sizes = int | Sequence[int]


def _require_quantized(input: Tensor, name: str) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


# Pooling


def avg_pool2d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Return `F.avg_pool2d` of a quantized tensor; the result keeps its scale."""
    _require_quantized(input, "avg_pool2d")
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Return `F.avg_pool3d` of a quantized tensor; the result keeps its scale."""
    _require_quantized(input, "avg_pool3d")
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return `F.adaptive_avg_pool2d` of a quantized tensor; the result keeps its scale."""
    _require_quantized(input, "functional.adaptive_avg_pool2d")
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return `F.adaptive_avg_pool3d` of a quantized tensor; the result keeps its scale."""
    _require_quantized(input, "functional.adaptive_avg_pool3d")
    return F.adaptive_avg_pool3d(input, output_size)


def max_pool1d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """Return `F.max_pool1d` of a quantized tensor. NotImplementedError for indices."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """Return `F.max_pool2d` of a quantized tensor. NotImplementedError for indices."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


# Products


def _convolve(
    dims: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
    padding_mode: str, scale: float, zero_point: int,
) -> Tensor:  # fmt: skip
    if padding_mode != "zeros":
        raise NotImplementedError(f"Only zero-padding is supported! got {padding_mode!r}")
    if input.dtype is not quint8:
        raise NotImplementedError(f"Only torch.quint8 is supported for activation tensor! got {input.dtype}")
    if weight.dtype is not qint8:
        raise NotImplementedError(f"Only torch.qint8 is supported for weight tensor! got {weight.dtype}")
    if input.dim() != dims + 2:
        raise ValueError(f"Input shape must be `(N, {', '.join('CDHW' if dims == 3 else 'CHW' if dims == 2 else 'CL')})`!")
    settings = [list(as_tuple(each, dims)) for each in (stride, padding, dilation)]
    packed = getattr(quantized, f"conv{dims}d_prepack")(weight, bias, *settings, groups)
    return getattr(quantized, f"conv{dims}d")(input, packed, scale, zero_point)


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1,
    groups: int = 1, padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: dtype = quint8,
) -> Tensor:  # fmt: skip
    """Return a convolution of quint8 (batch, channels, length) with a qint8 weight; the result has scale and zero point as
    given."""
    _require_result_dtype(dtype)
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1,
    groups: int = 1, padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: dtype = quint8,
) -> Tensor:  # fmt: skip
    """Return a convolution of quint8 (batch, channels, height, width) with a qint8 weight; the result has the given scale."""
    _require_result_dtype(dtype)
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point)


def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1,
    groups: int = 1, padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: dtype = quint8,
) -> Tensor:  # fmt: skip
    """Return a convolution of quint8 (batch, channels, depth, height, width) with a qint8 weight; the result has the given
    scale."""
    _require_result_dtype(dtype)
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point)


def _require_result_dtype(kind: dtype) -> None:
    if kind is not quint8:
        raise NotImplementedError(f"the result of a quantized convolution is quint8, as its input; got dtype={kind}")


def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, scale: float | None = None, zero_point: int | None = None
) -> Tensor:
    """Return `input @ weight.T + bias` of quantized tensors; without scale or zero point, the result has the input's."""
    packed = quantized.linear_prepack(weight, bias)
    scale = input.q_scale() if scale is None else scale
    return quantized.linear(input, packed, scale, input.q_zero_point() if zero_point is None else zero_point)


# Elementwise


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """Return `F.celu`."""
    _require_quantized(input, "celu")
    return quantized.celu(input, scale, zero_point, alpha)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """Return `F.elu`."""
    _require_quantized(input, "elu")
    return quantized.elu(input, scale, zero_point, alpha)


def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False, scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:  # fmt: skip
    """Return `F.leaky_relu`; without scale and zero point, the result has the input's."""
    if scale is not None and zero_point is not None:
        if inplace:
            raise AssertionError("Cannot rescale with `inplace`")
        return quantized.leaky_relu(input, negative_slope, False, scale, int(zero_point))
    return F.leaky_relu(input, negative_slope, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `F.hardtanh`."""
    _require_quantized(input, "hardtanh")
    return F.hardtanh(input, min_val, max_val, inplace)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """Return `F.hardswish`."""
    _require_quantized(input, "hardswish")
    return quantized.hardswish(input, scale, zero_point)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `F.hardsigmoid`."""
    _require_quantized(input, "hardsigmoid")
    return F.hardsigmoid(input, inplace)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """Return `F.threshold`."""
    _require_quantized(input, "threshold")
    for name, given in (("threshold", threshold), ("value", value)):
        if given is None:
            raise ValueError(f"Input to '{name}' must be specified!")
    return quantized.threshold(input, threshold, value)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """Return `torch.clamp`."""
    _require_quantized(input, "clamp")
    return input.clamp(min_, max_)


# Resizing


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Return `F.interpolate` of a quantized tensor; the result keeps its scale."""
    _require_quantized(input, "interpolate")
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def _warn_deprecated(name: str) -> None:
    warnings.warn(
        f"nn.quantized.functional.{name} is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=3
    )


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Return an older name of `interpolate`."""
    _warn_deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Bilinear `interpolate` with aligned corners."""
    _warn_deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Nearest-neighbour `interpolate`."""
    _warn_deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")
