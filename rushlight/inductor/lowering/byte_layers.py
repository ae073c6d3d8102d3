"""Lowering of quantized layers: a template of exact integer sums, with requantization as epilogue."""

from __future__ import annotations

import math

from rushlight.core.dtype import float32, int32, uint8
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Constant, Operand, Value
from rushlight.inductor.lowering.builder import call, cast
from rushlight.inductor.lowering.library_calls import Function, in_one_piece, library_call
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.tensor_box import TensorBox

MAX_ROW = 1 << 16  # bytes; positions in a row have 16 bits in the kernel
_AS_THEY_ARE = ((1, 1), (0, 0), (1, 1), 1)


@lowering("rushlight::byte_layer")
def byte_layer(graph, input, weight, zero_point, stride, padding, dilation, groups):
    return layer_of_bytes(graph, input, weight, zero_point, (stride, padding, dilation, groups))


def is_layer_of_bytes(graph, weight: Operand, depth: int | SymInt) -> bool:
    """Return whether a constant matrix (depth, outputs) is the transpose of a row-major one."""
    is_known = isinstance(depth, int) and depth < MAX_ROW
    return is_known and graph.is_constant_buffer(weight.buffer) and tuple(weight.strides) == (1, depth)


def layer_of_bytes(
    graph, input: TensorBox, weight: TensorBox, zero_point: TensorBox | None, geometry: tuple = _AS_THEY_ARE
) -> TensorBox:
    """Compute exact sums of input bytes (batch, height, width, channels), minus a zero point, times a weight (outputs, height,
    width, channels / groups). `geometry`: strides, paddings, dilations and groups."""
    stride, padding, dilation, groups = geometry
    images, height, width, channels = input.size
    outputs, kernel_height, kernel_width, group_channels = weight.size
    out_height = (height + 2 * padding[0] - dilation[0] * (kernel_height - 1) - 1) // stride[0] + 1
    out_width = (width + 2 * padding[1] - dilation[1] * (kernel_width - 1) - 1) // stride[1] + 1
    size = (images, out_height, out_width, outputs)
    if any(isinstance(each, int) and each == 0 for each in (*input.size, *weight.size, *size)):
        return graph.pointwise(size, int32, lambda index: Constant(int32, 0))
    operands = {"input": in_one_piece(graph, input), "weight": in_one_piece(graph, weight)}
    if zero_point is not None:
        operands["zero_point"] = in_one_piece(graph, zero_point)
    shape = (images, channels, height, width, outputs, kernel_height, kernel_width, *stride, *padding, *dilation, groups)
    return graph.template(
        "byte_layer", size, int32, images * out_height * out_width, outputs, operands, shape=shape,
        depth=group_channels * kernel_height * kernel_width, packed_once=graph.is_constant_buffer(operands["weight"].buffer),
    )  # fmt: skip


CHOOSE = Function("quantization", "choose_quantization", "limits_scratch_bytes")


@lowering("rushlight::choose_quantization")
def choose_quantization(graph, self, largest):
    count = math.prod(self.size)
    results = [((), float32), ((), int32)]
    return library_call(graph, CHOOSE, float32, [self], results, (count, largest), count)


@lowering("rushlight::quantize_bytes")
def quantize_bytes(graph, self, factor, zero_point, dtype, rounds_first=False):
    low, high = (Constant(float32, bound) for bound in ((0.0, 255.0) if dtype is uint8 else (-128.0, 127.0)))

    def element(index) -> Value:
        value, by, zero = (graph.load(each, index, self.size, float32) for each in (self, factor, zero_point))
        if not rounds_first:
            return cast(call("nearest", int32, call("multiply_add", float32, value, by, zero), low, high), dtype)
        bounds = (call("sub", float32, bound, zero) for bound in (low, high))
        near = call("nearest", int32, call("mul", float32, value, by), *bounds)
        return cast(call("add", int32, near, graph.load(zero_point, index, self.size, int32)), dtype)

    return graph.pointwise(self.size, dtype, element)


@lowering("rushlight::multiply_add")
def multiply_add(graph, self: TensorBox, factor: TensorBox, addend: TensorBox) -> TensorBox:
    return graph.elementwise("multiply_add", self.dtype, self.dtype, self, factor, addend)


@lowering("rushlight::rounded_mul")
def rounded_mul(graph, self: TensorBox, other: TensorBox) -> TensorBox:
    return graph.elementwise("rounded_product", self.dtype, self.dtype, self, other)
