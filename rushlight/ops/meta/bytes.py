"""Shape checks and Meta rules of 8-bit operators."""

from __future__ import annotations

from rushlight.core.dtype import float32, int8, int32, uint8
from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_byte_layer(
    input: Tensor, weight: Tensor, zero_point: Tensor, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> tuple:
    """Return the shape of a layer's results; RuntimeError when sizes or dtypes do not fit."""
    x, w = input._impl, weight._impl
    if x.dtype not in (uint8, int8) or w.dtype is not int8 or zero_point._impl.dtype is not int32 or zero_point.dim():
        raise RuntimeError(
            "byte_layer: expected an input of uint8 or int8, a weight of int8 and an int32 zero point without dimensions, got "
            f"{x.dtype}, {w.dtype} and {zero_point._impl.dtype} of {list(zero_point.shape)}"
        )
    if len(x.sizes) != 4 or len(w.sizes) != 4 or x.sizes[3] != w.sizes[3] * groups or w.sizes[0] % groups:
        raise RuntimeError(
            "byte_layer: expected an input (batch, height, width, channels) and a weight (outputs, height, width, "
            f"channels / {groups}), got {list(x.sizes)} and {list(w.sizes)}"
        )
    sizes = []
    for position in range(2):
        reach = dilation[position] * (w.sizes[1 + position] - 1) + 1
        room = x.sizes[1 + position] + 2 * padding[position] - reach
        if room < 0:
            raise RuntimeError(f"byte_layer: a kernel that reaches over {reach} elements is larger than the padded input")
        sizes.append(room // stride[position] + 1)
    return x.sizes[0], *sizes, w.sizes[0]


@meta("rushlight::byte_layer")
def byte_layer(input, weight, zero_point, stride, padding, dilation, groups):
    return empty(check_byte_layer(input, weight, zero_point, stride, padding, dilation, groups), int32)


@meta("rushlight::choose_quantization")
def choose_quantization(self, largest):
    if self._impl.dtype is not float32:
        raise RuntimeError(f"choose_quantization: expected float32 numbers, got {self._impl.dtype}")
    return empty((), float32), empty((), int32)


@meta("rushlight::quantize_bytes")
def quantize_bytes(self, factor, zero_point, dtype, rounds_first=False):
    if self._impl.dtype is not float32 or factor._impl.dtype is not float32 or dtype not in (uint8, int8):
        raise RuntimeError(
            "quantize_bytes: from float32 by a float32 factor to uint8 or int8, got "
            f"{self._impl.dtype}, {factor._impl.dtype} and {dtype}"
        )
    return empty(self._impl.sizes, dtype)


@meta("rushlight::multiply_add")
def multiply_add(self, factor, addend):
    sizes = broadcast_shapes(self._impl.sizes, factor._impl.sizes, addend._impl.sizes)
    return empty(sizes, self._impl.dtype)


@meta("rushlight::rounded_mul")
def rounded_mul(self, other):
    return empty(broadcast_shapes(self._impl.sizes, other._impl.sizes), self._impl.dtype)
