"""CPU kernels of 8-bit operators, in NumPy. They serve as a reference: graphs compile these operators, and eager quantized
tensors have other kernels."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import float32, float64, int32, uint8
from rushlight.core.tensor import tensor_from_array
from rushlight.ops.cpu.common import make
from rushlight.ops.meta.bytes import check_byte_layer
from rushlight.ops.quantization_parameters import choose
from rushlight.ops.registry import aten, cpu

_CONVOLUTION = aten("convolution")


@cpu("rushlight::byte_layer")
def byte_layer(input, weight, zero_point, stride, padding, dilation, groups):
    check_byte_layer(input, weight, zero_point, stride, padding, dilation, groups)
    # Sums of products of bytes are exact in float64.
    shifted = input._impl.array.transpose(0, 3, 1, 2).astype(np.float64) - int(zero_point._impl.array)
    filters = weight._impl.array.transpose(0, 3, 1, 2).astype(np.float64)
    given = (tensor_from_array(np.ascontiguousarray(each), float64) for each in (shifted, filters))
    made = _CONVOLUTION(*given, None, stride, padding, dilation, False, [0, 0], groups)
    return make(np.ascontiguousarray(made._impl.array.transpose(0, 2, 3, 1), np.int32), int32)


def _nearest(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Round half to even and clamp; NaN becomes the upper bound."""
    return np.maximum(np.fmin(np.rint(values), high), low)


@cpu("rushlight::choose_quantization")
def choose_quantization(self, largest):
    values = self._impl.array
    scale, zero_point = choose(float(values.min(initial=0)), float(values.max(initial=0)), 0, largest)
    return make(np.float32(scale), float32), make(np.int32(zero_point), int32)


@cpu("rushlight::quantize_bytes")
def quantize_bytes(self, factor, zero_point, dtype, rounds_first=False):
    low, high = (0, 255) if dtype is uint8 else (-128, 127)
    by, zero = factor._impl.array, np.float32(zero_point._impl.array)
    with np.errstate(invalid="ignore", over="ignore"):
        if rounds_first:
            made = _nearest(self._impl.array * by, low - zero, high - zero) + zero
        else:  # like a fused multiply-add: round product and sum once
            exact = self._impl.array.astype(np.float64) * by.astype(np.float64) + np.float64(zero)
            made = _nearest(exact.astype(np.float32), low, high)
    return make(made.astype(dtype.numpy), dtype)


@cpu("rushlight::multiply_add")
def multiply_add(self, factor, addend):
    """Round product and sum once, as the fused instruction does."""
    exact = self._impl.array * factor._impl.array.astype(np.float64) + addend._impl.array.astype(np.float64)
    return make(exact.astype(np.float32), self._impl.dtype)


@cpu("rushlight::rounded_mul")
def rounded_mul(self, other):
    return make(self._impl.array * other._impl.array, self._impl.dtype)
