"""Lowering of what quantized layers consist of: a template of exact sums, into whose epilogue goes what becomes of them."""

from __future__ import annotations

from rushlight.core.dtype import float32, int32, uint8
from rushlight.inductor.ir import Constant, Value
from rushlight.inductor.lowering.builder import call, cast
from rushlight.inductor.lowering.library_calls import in_one_piece
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.tensor_box import TensorBox


@lowering("rushlight::byte_layer")
def byte_layer(graph, input, weight, zero_point, stride, padding, dilation, groups):
    images, height, width, channels = input.size
    outputs, kernel_height, kernel_width, group_channels = weight.size
    out_height = (height + 2 * padding[0] - dilation[0] * (kernel_height - 1) - 1) // stride[0] + 1
    out_width = (width + 2 * padding[1] - dilation[1] * (kernel_width - 1) - 1) // stride[1] + 1
    size = (images, out_height, out_width, outputs)
    if any(isinstance(each, int) and each == 0 for each in (*input.size, *weight.size, *size)):
        return graph.pointwise(size, int32, lambda index: Constant(int32, 0))
    operands = {"input": in_one_piece(graph, input), "weight": in_one_piece(graph, weight),
                "zero_point": in_one_piece(graph, zero_point)}  # fmt: skip
    shape = (images, channels, height, width, outputs, kernel_height, kernel_width, *stride, *padding, *dilation, groups)
    return graph.template(
        "byte_layer", size, int32, images * out_height * out_width, outputs, operands, shape=shape,
        depth=group_channels * kernel_height * kernel_width, packed_once=graph.is_constant_buffer(operands["weight"].buffer),
    )  # fmt: skip


def _nearest(value: Value, zero: Value | float, kind) -> Value:
    """The nearest int32 to a float32 value which, with a zero point added, is within the limits of a dtype of bytes."""
    low, high = (0.0, 255.0) if kind is uint8 else (-128.0, 127.0)
    bounds = [Constant(float32, bound - zero) if isinstance(zero, int | float)
              else call("sub", float32, Constant(float32, bound), zero) for bound in (low, high)]  # fmt: skip
    return call("nearest", int32, value, *bounds)


@lowering("rushlight::quantize_bytes", "rushlight::quantize_bytes.tensors")
def quantize_bytes(graph, self, inverse, zero_point, dtype, rounds_first=False):
    def element(index) -> Value:
        value, factor, zero = (graph.load(each, index, self.size, float32) for each in (self, inverse, zero_point))
        if not rounds_first:
            return cast(_nearest(call("multiply_add", float32, value, factor, zero), 0.0, dtype), dtype)
        near = _nearest(call("mul", float32, value, factor), float(zero_point), dtype)
        return cast(call("add", int32, near, Constant(int32, zero_point)), dtype)

    return graph.pointwise(self.size, dtype, element)


@lowering("rushlight::rounded_mul", "rushlight::rounded_mul.Scalar")
def rounded_mul(graph, self: TensorBox, other: TensorBox | float) -> TensorBox:
    return graph.elementwise("rounded_product", self.dtype, self.dtype, self, other)
