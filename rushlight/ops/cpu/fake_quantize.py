"""CPU kernels of fake quantization: x becomes (q - zero point) * scale, where q is round(x / scale) + zero point in a range.

Products are float32 and rounding is half to even, so results equal those of ATen's kernels. The masks say where q was in range
before it was clamped.
"""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import bool_, float32, int32
from rushlight.core.strides import elementwise_strides
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import make, operand
from rushlight.ops.cpu.results import by_strides
from rushlight.ops.meta.fake_quantize import (
    check_learnable,
    check_observed,
    check_per_channel,
    check_per_tensor,
    check_zero_point,
)
from rushlight.ops.quantization_parameters import choose
from rushlight.ops.registry import cpu


def _fake_quantized(
    self: Tensor, scale: np.ndarray, zero_point: np.ndarray, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """Return the fake-quantized tensor, and the mask of values in range; `scale` and `zero_point` broadcast."""
    x = operand(self, self.dtype)
    with np.errstate(all="ignore"):
        integers = _integers(x, scale, zero_point)
        mask = (integers >= quant_min) & (integers <= quant_max)
        if zero_point.dtype.kind == "f":  # round the sum once, as ATen does
            zero_point = zero_point.astype(np.float64)
        values = (np.clip(integers, quant_min, quant_max) - zero_point) * scale
    return _like(self, values, mask)


def _like(self: Tensor, values: np.ndarray, mask: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return the results with the strides of `self`."""
    sizes = self._impl.sizes
    strides = elementwise_strides(sizes, [(sizes, self._impl.strides)])
    return by_strides(values.astype(self.dtype.numpy, copy=False), self.dtype, strides), by_strides(mask, bool_, strides)


def _integers(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    scaled = x * (np.float32(1) / scale)
    if zero_point.dtype.kind == "f":
        return np.rint(scaled + zero_point)
    return np.rint(scaled) + zero_point.astype(np.float32)


@cpu("fake_quantize_per_tensor_affine_cachemask")
def per_tensor(self, scale, zero_point, quant_min, quant_max):
    check_per_tensor(self, quant_min, quant_max)
    check_zero_point(zero_point, quant_min, quant_max)
    return _fake_quantized(self, np.asarray(scale, np.float32), np.asarray(zero_point, np.int32), quant_min, quant_max)


@cpu("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def per_tensor_of_tensors(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    check_per_tensor(self, quant_min, quant_max, scale, zero_point, fake_quant_enabled)
    if not fake_quant_enabled._impl.array.reshape(()):
        return _pass_through(self)
    return per_tensor(self, float(scale._impl.array.reshape(())), int(zero_point._impl.array.reshape(())), quant_min, quant_max)


def _pass_through(self: Tensor) -> tuple[Tensor, Tensor]:
    x = operand(self, self.dtype)
    return _like(self, np.array(x), np.ones(x.shape, np.bool_))


@cpu("fake_quantize_per_channel_affine_cachemask")
def per_channel(self, scale, zero_point, axis, quant_min, quant_max):
    check_per_channel(self, scale, zero_point, axis, quant_min, quant_max)
    offsets = zero_point._impl.array
    if offsets.dtype.kind == "i" and offsets.size:
        check_zero_point(int(offsets.min()), quant_min, quant_max)
        check_zero_point(int(offsets.max()), quant_min, quant_max)
    along = (-1, *(1,) * (self.dim() - axis - 1))
    scales, offsets = operand(scale, float32).reshape(along), offsets.reshape(along)
    return _fake_quantized(self, scales, offsets, quant_min, quant_max)


@cpu("_fake_quantize_learnable_per_tensor_affine")
def learnable_per_tensor(self, scale, zero_point, quant_min, quant_max, grad_factor=1.0):
    check_learnable(self, scale, zero_point, quant_min, quant_max)
    check_per_tensor(self, quant_min, quant_max, scale, zero_point)
    offset = np.float32(zero_point._impl.array.reshape(())) + np.float32(0.5)
    offset = int(min(max(offset, quant_min), quant_max))
    return per_tensor(self, float(scale._impl.array.reshape(())), offset, quant_min, quant_max)[0]


@cpu("_fake_quantize_learnable_per_channel_affine")
def learnable_per_channel(self, scale, zero_point, axis, quant_min, quant_max, grad_factor=1.0):
    check_learnable(self, scale, zero_point, quant_min, quant_max)
    check_per_channel(self, scale, zero_point, axis, quant_min, quant_max)
    offsets = make(np.clip(np.rint(zero_point._impl.array), quant_min, quant_max).astype(np.int32), int32)
    return per_channel(self, scale, offsets, axis, quant_min, quant_max)[0]


# Observe and fake-quantize in one operator


@cpu("_fused_moving_avg_obs_fq_helper")
def observed(
    self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max,
    ch_axis, per_row_fake_quant=False, symmetric_quant=False,
):  # fmt: skip
    check_observed(self, running_min, ch_axis, per_row_fake_quant)
    if observer_on.item():
        axis = ch_axis if per_row_fake_quant else None
        _follow_range(self, running_min, running_max, averaging_const, axis)
        _resize(running_min.numel(), scale, zero_point)
    if not fake_quant_on.item():
        return _pass_through(self)
    _choose(running_min, running_max, scale, zero_point, quant_min, quant_max, symmetric_quant)
    if per_row_fake_quant:
        return per_channel(self, scale, zero_point, ch_axis, quant_min, quant_max)
    return per_tensor(self, float(scale._impl.array[0]), int(zero_point._impl.array[0]), quant_min, quant_max)


def _resize(count: int, *tensors: Tensor) -> None:
    for each in tensors:
        if each.numel() != count:
            each.resize_((count,))


def _follow_range(self: Tensor, running_min: Tensor, running_max: Tensor, constant: float, axis: int | None) -> None:
    """Move the running range towards that of `self`, or of each index of `axis`; an infinite running range is replaced."""
    x = operand(self, float32)
    others = None if axis is None else tuple(dim for dim in range(x.ndim) if dim != axis)
    for running, reduce, start in ((running_min, np.min, np.inf), (running_max, np.max, -np.inf)):
        found = np.atleast_1d(reduce(x, axis=others))
        if running.numel() == 0:
            _resize(found.size, running)
            running._impl.array[...] = start
        before = running._impl.array.reshape(-1)
        with np.errstate(invalid="ignore"):
            moved = before + np.float32(constant) * (found - before)
        running._impl.array[...] = np.where(np.isinf(before), found, moved).reshape(running._impl.array.shape)
        running._impl.storage.generation += 1  # compiled code may have embedded the old values


def _choose(
    low: Tensor, high: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, symmetric: bool
) -> None:
    lows, highs = (each._impl.array.reshape(-1) for each in (low, high))
    found = [choose(float(a), float(b), quant_min, quant_max, symmetric) for a, b in zip(lows, highs, strict=True)]
    for target, values in zip((scale, zero_point), zip(*found, strict=True), strict=True):
        target._impl.array[...] = np.asarray(values).reshape(target._impl.array.shape)
        target._impl.storage.generation += 1
