"""Lowering of bfloat16 convolutions to a template that multiplies pairs in tile registers; sums are float32."""

from __future__ import annotations

import math

from rushlight.core.dtype import bfloat16, float32
from rushlight.inductor import costs
from rushlight.inductor.lowering.convolutions import as_channels_first, as_channels_last, has_one_filter
from rushlight.inductor.lowering.library_calls import in_one_piece
from rushlight.inductor.sizes import as_sizes
from rushlight.inductor.tensor_box import TensorBox

MIN_PANEL_SHARE = 16  # with fewer output channels, most of a panel would be padding


def multiplies_by_words(graph, input: TensorBox, weight: TensorBox, groups: int) -> bool:
    """Return whether a plain convolution of one or two dimensions is computed from bfloat16 pairs by the processor."""
    is_plain = input.dtype is weight.dtype is bfloat16 and groups == 1 and len(weight.size) in (3, 4)
    if graph.target.keeps_halves or not is_plain:
        return False
    known = all(isinstance(size, int) and size for size in as_sizes(weight.size))
    return known and not has_one_filter(weight) and weight.size[0] >= MIN_PANEL_SHARE and costs.multiplies_in_tiles()


def convolution_by_words(graph, input: TensorBox, weight: TensorBox, stride, padding, dilation) -> TensorBox:
    """Return a 2-D convolution, without bias, in float32."""
    images, channels, height, width = input.size
    outputs, _, kernel_height, kernel_width = weight.size
    out_height = (height + 2 * padding[0] - dilation[0] * (kernel_height - 1) - 1) // stride[0] + 1
    out_width = (width + 2 * padding[1] - dilation[1] * (kernel_width - 1) - 1) // stride[1] + 1
    shape = (images, channels, height, width, outputs, kernel_height, kernel_width, *stride, *padding, *dilation, 1)
    operands = {
        "input": in_one_piece(graph, as_channels_last(input)), "weight": in_one_piece(graph, as_channels_last(weight)),
    }  # fmt: skip
    made = graph.template(
        "word_convolution", (images, out_height, out_width, outputs), float32, images * out_height * out_width, outputs,
        operands, shape=shape, depth=math.prod(weight.size[1:]),
        packed_once=graph.is_constant_buffer(operands["weight"].buffer),
    )  # fmt: skip
    return as_channels_first(made)
