"""The public functions on quantized tensors: `quantize_per_tensor`, `dequantize`, and so on, as in torch."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.device import device_for_operator
from rushlight.core.dtype import dtype
from rushlight.core.overrides import overridable
from rushlight.core.tensor import Tensor
from rushlight.quantized.operators import aten

_Element = dtype


@overridable
def quantize_per_tensor(
    input: Tensor | Sequence[Tensor], scale: float | Tensor, zero_point: int | Tensor, dtype: _Element
) -> Tensor | list[Tensor]:
    """Quantize a float32 tensor: round(input / scale + zero_point), halves to even, clamped to the dtype's limits.

    `dtype` is quint8, qint8 or qint32. A list of tensors takes scales and zero points as tensors, one for each. RuntimeError
    for another dtype and for a zero point that it does not hold. Of ATen: `quantize_per_tensor`.
    """
    return aten.quantize_per_tensor(input, scale, zero_point, dtype)


@overridable
def quantize_per_tensor_dynamic(input: Tensor, dtype: _Element, reduce_range: bool) -> Tensor:
    """Quantize a float32 tensor, with the scale and the zero point computed from its minimum and maximum.

    `dtype` is quint8 or qint8; float16 converts only. `reduce_range` uses one bit less. Of ATen: `quantize_per_tensor_dynamic`.
    """
    return aten.quantize_per_tensor_dynamic(input, dtype, reduce_range)


@overridable
def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: _Element) -> Tensor:
    """Quantize a float32 tensor, with a scale and a zero point for each index of dimension `axis`.

    Floating zero points give the scheme `per_channel_affine_float_qparams`. RuntimeError where the lengths don't fit. Of ATen:
    `quantize_per_channel`.
    """
    return aten.quantize_per_channel(input, scales, zero_points, axis, dtype)


@overridable
def dequantize(tensor: Tensor | Sequence[Tensor]) -> Tensor | list[Tensor]:
    """Dequantize a tensor, or each tensor of a list, to float32: (q - zero point) * scale."""
    return aten.dequantize(tensor)


@overridable
def int_repr(input: Tensor) -> Tensor:
    """Return the integers of a quantized tensor: a copy of dtype uint8, int8 or int32."""
    return aten.int_repr(input)


@overridable
def q_scale(input: Tensor) -> float:
    """Return the scale of a quantized tensor that has one; RuntimeError for one with a scale per channel."""
    return aten.q_scale(input)


@overridable
def q_zero_point(input: Tensor) -> int:
    """Return the zero point of a quantized tensor that has one; RuntimeError for one with a zero point per channel."""
    return aten.q_zero_point(input)


@overridable
def q_per_channel_scales(input: Tensor) -> Tensor:
    """Return the scales of the channels, float64 (float32 where zero points are no integers)."""
    return aten.q_per_channel_scales(input)


@overridable
def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """Return the zero points of the channels, int64 or float32."""
    return aten.q_per_channel_zero_points(input)


@overridable
def q_per_channel_axis(input: Tensor) -> int:
    """Return the dimension along which scales differ."""
    return aten.q_per_channel_axis(input)


@overridable
def quantized_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, output_scale: float,
    output_zero_point: int,
) -> Tensor:  # fmt: skip
    """Normalise the channels of a quantized tensor (N, C, H, W) by a mean and a variance, (C,) each; the result has the given
    scale and zero point. Of ATen: `quantized_batch_norm`."""
    return aten.quantized_batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point)


@overridable
def quantized_max_pool1d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] = (), padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """Return the largest elements of windows of a quantized tensor (N, C, L); see `nn.functional.max_pool1d`."""
    return aten.quantized_max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


@overridable
def quantized_max_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] = (), padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """Return the largest elements of windows of a quantized tensor (N, C, H, W); see `nn.functional.max_pool2d`."""
    return aten.quantized_max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


@overridable
def quantized_max_pool3d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] = (), padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """Return the largest elements of windows of a quantized tensor (N, C, D, H, W); see `nn.functional.max_pool3d`."""
    return aten.quantized_max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


def _choose_qparams_per_tensor(input: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """Return the scale and the zero point with which 0 to 255 (127 with `reduce_range`) cover a tensor's elements.

    RuntimeError for NaN and for a tensor without elements. Of ATen: `_choose_qparams_per_tensor`.
    """
    return aten._choose_qparams_per_tensor(input, reduce_range)


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """Return a quantized tensor over a copy of the given integers (uint8, int8 or int32)."""
    return aten._make_per_tensor_quantized_tensor(input, scale, zero_point)


def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """Return a quantized tensor of given integers with a scale for each index of dimension `axis`."""
    return aten._make_per_channel_quantized_tensor(input, scale, zero_point, axis)


def _empty_affine_quantized(
    size: Sequence[int], *, scale: float = 1.0, zero_point: int = 0, dtype: _Element | None = None, device: str = "cpu"
) -> Tensor:
    """Return a quantized tensor of this size, with integers 0."""
    device_for_operator(device, "aten::_empty_affine_quantized")
    return aten._empty_affine_quantized(list(size), scale=scale, zero_point=zero_point, dtype=dtype)


def _empty_per_channel_affine_quantized(
    size: Sequence[int], *, scales: Tensor, zero_points: Tensor, axis: int, dtype: _Element | None = None, device: str = "cpu"
) -> Tensor:
    """Return a quantized tensor of a size with a scale for each index of dimension `axis`, whose integers are 0."""
    device_for_operator(device, "aten::_empty_per_channel_affine_quantized")
    return aten._empty_per_channel_affine_quantized(
        list(size), scales=scales, zero_points=zero_points, axis=axis, dtype=dtype
    )
