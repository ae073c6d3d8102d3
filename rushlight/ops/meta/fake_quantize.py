"""Checks and Meta rules of fake quantization."""

from __future__ import annotations

from rushlight.core.dtype import bool_, float16, float32, float64, int32
from rushlight.core.strides import elementwise_strides
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def _check_input(name: str, self: Tensor, quant_min: int, quant_max: int) -> None:
    if self.dtype not in (float32, float64, float16):
        raise not_implemented(name, self.dtype)
    if quant_min > quant_max:
        raise RuntimeError(
            f"`quant_min` should be less than or equal to `quant_max`: got {quant_min} and {quant_max}. Exchange the two"
        )


def check_zero_point(zero_point: int, quant_min: int, quant_max: int) -> None:
    """Raise RuntimeError unless the zero point is within the integers' range."""
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError(
            f"`zero_point` must be between `quant_min` and `quant_max`: got {zero_point}, {quant_min} and {quant_max}"
        )


def check_per_tensor(self: Tensor, quant_min: int, quant_max: int, *numbers: Tensor) -> None:
    """Raise RuntimeError unless dtype and range are valid, and each of `numbers` has one element."""
    _check_input("fake_quantize_tensor_cachemask_kernel", self, quant_min, quant_max)
    for each in numbers:
        if each.numel() != 1:
            raise RuntimeError(
                f"fake_quantize_per_tensor_affine: scale and zero point have one element, got {list(each.shape)}"
            )


def check_per_channel(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int) -> None:
    """Raise RuntimeError unless there is a scale and a zero point for each index of dimension `axis`."""
    _check_input("fake_quantize_channel_cachemask_cpu", self, quant_min, quant_max)
    if scale.dtype is not float32:
        raise RuntimeError(f"Scale must be Float, found {scale.dtype}")
    if zero_point.dtype not in (int32, float32, float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype}")
    if scale.dim() != 1 or zero_point.dim() != 1:
        raise RuntimeError(
            f"scale should be a 1-D tensor, as the zero point: got {scale.dim()} and {zero_point.dim()} dimensions"
        )
    if scale.numel() != zero_point.numel():
        raise RuntimeError(
            f"scale and zero-point need to have the same dimensions, got {scale.numel()} and {zero_point.numel()} elements"
        )
    if not 0 <= axis < self.dim():
        raise RuntimeError(f"`axis` must be between 0 and number of dimensions of input, {self.dim()}: got {axis}")
    if scale.numel() != self.size(axis):
        raise RuntimeError(
            "dimensions of scale and zero-point are not consistent with input tensor: got "
            f"{scale.numel()} for dimension {axis} of {list(self.shape)}"
        )


def check_learnable(self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int) -> None:
    """Raise RuntimeError unless scale and zero point are floats, and the integers' range includes 0."""
    _check_input("fake_quantize_learnable", self, quant_min, quant_max)
    if scale.dtype is not float32 or zero_point.dtype is not float32:
        raise RuntimeError(f"Scale and zero-point must be Float, found {scale.dtype} and {zero_point.dtype}")
    if not quant_min <= 0 <= quant_max:
        raise RuntimeError(f"Expecting `quant_min` <= 0 and `quant_max` >= 0, got {quant_min} and {quant_max}")


def check_observed(self: Tensor, running_min: Tensor, ch_axis: int, per_row: bool) -> None:
    """Raise RuntimeError unless an observer can track the input's range, per index of `ch_axis` if `per_row`. A running range
    without elements takes the size that it needs."""
    if self.dtype is not float32:
        raise RuntimeError(f"fused_moving_avg_obs_fake_quant: expected a float32 input, got {self.dtype}")
    if per_row and not 0 <= ch_axis < self.dim():
        raise RuntimeError("Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()")
    ranges = self.size(ch_axis) if per_row else 1
    if running_min.numel() not in (0, ranges):
        raise RuntimeError(
            f"fused_moving_avg_obs_fake_quant: expected a running range of {ranges} elements, got {running_min.numel()}"
        )


def _with_mask(self: Tensor) -> tuple[Tensor, Tensor]:
    sizes = self._impl.sizes
    strides = elementwise_strides(sizes, [(sizes, self._impl.strides)])
    return empty(sizes, self.dtype, strides), empty(sizes, bool_, strides)


@meta("fake_quantize_per_tensor_affine_cachemask")
def per_tensor(self, scale, zero_point, quant_min, quant_max):
    check_per_tensor(self, quant_min, quant_max)
    check_zero_point(zero_point, quant_min, quant_max)
    return _with_mask(self)


@meta("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def per_tensor_of_tensors(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    check_per_tensor(self, quant_min, quant_max, scale, zero_point, fake_quant_enabled)
    return _with_mask(self)


@meta("fake_quantize_per_channel_affine_cachemask")
def per_channel(self, scale, zero_point, axis, quant_min, quant_max):
    check_per_channel(self, scale, zero_point, axis, quant_min, quant_max)
    return _with_mask(self)


@meta("_fake_quantize_learnable_per_tensor_affine")
def learnable_per_tensor(self, scale, zero_point, quant_min, quant_max, grad_factor=1.0):
    check_learnable(self, scale, zero_point, quant_min, quant_max)
    check_per_tensor(self, quant_min, quant_max, scale, zero_point)
    return _with_mask(self)[0]


@meta("_fake_quantize_learnable_per_channel_affine")
def learnable_per_channel(self, scale, zero_point, axis, quant_min, quant_max, grad_factor=1.0):
    check_learnable(self, scale, zero_point, quant_min, quant_max)
    check_per_channel(self, scale, zero_point, axis, quant_min, quant_max)
    return _with_mask(self)[0]


@meta("_fused_moving_avg_obs_fq_helper")
def observed(
    self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max,
    ch_axis, per_row_fake_quant=False, symmetric_quant=False,
):  # fmt: skip
    check_observed(self, running_min, ch_axis, per_row_fake_quant)
    return _with_mask(self)
