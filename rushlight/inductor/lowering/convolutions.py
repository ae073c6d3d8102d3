"""Lowering of 2-D convolutions to templates.

Results are channels-last: vector lanes are output channels, and elementwise consumers keep that order (see
`layout.in_memory_order`), so that no layout changes between convolutions. Grouped convolutions use the order of the caller's
tensors.
"""

from __future__ import annotations

import math

from rushlight.inductor import costs
from rushlight.inductor.ir import Operand
from rushlight.inductor.lowering.builder import same_strides
from rushlight.inductor.lowering.pointwise import add, mul_boxes
from rushlight.inductor.sizes import Size, as_size, as_sizes, hint
from rushlight.inductor.tensor_box import TensorBox

MIN_BLOCK = 16  # channels that are read as a block
MAX_NARROW_GROUP = 96  # groups with at most this many channels use the template for narrow groups


def convolution(graph, input, weight, bias, stride, padding, dilation, groups):
    """Return a 2-D convolution in float32."""
    images, channels, height, width = input.size
    outputs, _, kernel_height, kernel_width = weight.size
    reach_height, reach_width = dilation[0] * (kernel_height - 1) + 1, dilation[1] * (kernel_width - 1) + 1
    out_height = (height + 2 * padding[0] - reach_height) // stride[0] + 1
    out_width = (width + 2 * padding[1] - reach_width) // stride[1] + 1
    shape = (images, channels, height, width, outputs, kernel_height, kernel_width, *stride, *padding, *dilation, groups)
    if has_filter_each(weight, groups) and lies_channels_last(graph, input):
        made = _lower_depthwise(graph, input, weight, shape, (images, out_height, out_width, outputs))
    elif has_narrow_groups(weight, groups):
        made = _lower_narrow_groups(graph, input, weight, shape, (images, out_height, out_width, outputs))
    elif groups > 1 or has_one_filter(weight):
        made = _lower_grouped(graph, input, weight, shape, (images, outputs, out_height, out_width))
    else:
        made = _lower_channels_last(graph, input, weight, shape, (images, out_height, out_width, outputs))
    result = made if bias is None else add(graph, made, bias.reshape((1, outputs, 1, 1)))
    if graph.consumers == 1 and graph.is_constant(weight) and (bias is None or graph.is_constant(bias)):
        graph.scaled_forms[result] = lambda scale: _fold_scale(
            graph, scale, input, weight, bias, stride, padding, dilation, groups
        )
    return result


def _fold_scale(graph, scale: TensorBox, input, weight, bias, *rest) -> TensorBox:
    """Return the convolution times a constant per output channel, folded into weight and bias."""
    weight = graph.realize(mul_boxes(graph, weight, scale.reshape((weight.size[0], 1, 1, 1))))
    if bias is not None:
        bias = graph.realize(mul_boxes(graph, bias, scale.reshape(bias.size)))
    return convolution(graph, input, weight, bias, *rest)


def has_filter_each(weight: TensorBox, groups: int) -> bool:
    """Return whether the convolution is depthwise: each channel has its own filter."""
    return groups > 1 and weight.size[0] == groups and weight.size[1] == 1


def has_one_filter(weight: TensorBox) -> bool:
    """Return whether one output channel is made from one input channel, so that vectors run along rows of images."""
    return as_sizes(weight.size[:2]) == (1, 1)


def has_narrow_groups(weight: TensorBox, groups: int) -> bool:
    """Return whether groups are too narrow for one matrix product each."""
    groups, outputs, channels = as_sizes((groups, *weight.size[:2]))
    if groups == 1 or not all(isinstance(size, int) for size in (groups, outputs, channels)):
        return False  # unknown for open sizes
    if has_filter_each(weight, groups):
        return False
    return max(outputs // groups, channels) <= MAX_NARROW_GROUP


def lies_channels_last(graph, image: TensorBox) -> bool:
    """Return whether an image is channels-last in memory."""
    found = graph.operand(image, image.size)
    return found is not None and found.strides[1] == 1


def _lower_depthwise(graph, input: TensorBox, weight: TensorBox, shape: tuple, size: tuple) -> TensorBox:
    filters = contiguous_operand(graph, weight)
    operands = {"input": graph.operand(input, input.size), "weight": filters}
    made = graph.template(
        "depthwise", size, input.dtype, size[0] * size[1] * size[2], size[3], operands, shape=shape,
        depth=weight.size[2] * weight.size[3], packed_once=graph.is_constant_buffer(filters.buffer),
    )  # fmt: skip
    return as_channels_first(made)


def _lower_narrow_groups(graph, input: TensorBox, weight: TensorBox, shape: tuple, size: tuple) -> TensorBox:
    filters, groups = contiguous_operand(graph, weight), shape[-1]
    outputs, channels, kernel_height, kernel_width = as_sizes(weight.size)
    operands = {"input": channels_last_operand(graph, input), "weight": filters}
    made = graph.template(
        "grouped", size, input.dtype, size[0] * size[1] * size[2], size[3], operands, shape=shape,
        depth=channels * kernel_height * kernel_width, each=(channels, outputs // groups),
        packed_once=graph.is_constant_buffer(filters.buffer),
    )  # fmt: skip
    return as_channels_first(made)


def channels_last_operand(graph, box: TensorBox) -> Operand:
    """Return images as a strided channels-last operand; copies if necessary."""
    found = graph.operand(box, box.size)
    if found is not None and (found.strides[1] == 1 or as_size(box.size[1]) == 1):
        return found
    return _copy_channels_last(graph, box)


def as_channels_first(made: TensorBox) -> TensorBox:
    """View images [N, H, W, C] as [N, C, H, W]."""
    images, height, width, channels = made.size
    return made.view((images, channels, height, width), lambda index: [index[0], index[2], index[3], index[1]])


def as_channels_last(box: TensorBox) -> TensorBox:
    """View images [N, C, H, W] as [N, H, W, C]."""
    images, channels, height, width = box.size
    return box.view((images, height, width, channels), lambda index: [index[0], index[3], index[1], index[2]])


def _lower_grouped(graph, input: TensorBox, weight: TensorBox, shape: tuple, size: tuple) -> TensorBox:
    operands = {"input": contiguous_operand(graph, input), "weight": contiguous_operand(graph, weight)}
    _, group_channels, kernel_height, kernel_width = weight.size
    return graph.template(
        "convolution", size, input.dtype, size[0] * size[1], size[2] * size[3], operands, shape=shape,
        depth=group_channels * kernel_height * kernel_width,
    )  # fmt: skip


def contiguous_operand(graph, box: TensorBox) -> Operand:
    """Return the box as a dense row-major operand; copies if necessary."""
    return graph.row_major_operand(box) or graph.row_major_operand(graph.copy(box))


def filter_operand(graph, weight: TensorBox) -> Operand:
    """Return the weight as a dense operand, row-major or channels-last; copies if necessary. A target that reads blocks of
    channels gets them side by side."""
    found, (outputs, channels, height, width) = graph.operand(weight, weight.size), as_sizes(weight.size)
    last = (as_size(channels * height * width), 1, as_size(channels * width), channels)
    if found is not None and same_strides((outputs, channels, height, width), found.strides, last):
        return found
    if graph.target.reads_blocks and as_size(channels) != 1 and (height, width) != (1, 1):
        return _copy_channels_last(graph, weight)
    return contiguous_operand(graph, weight)


def _lower_channels_last(graph, input: TensorBox, weight: TensorBox, shape: tuple, size: tuple) -> TensorBox:
    images, out_height, out_width, outputs = size
    source = graph.operand(input, input.size) or graph.operand(graph.copy(input, row_major=False), input.size)
    filters = filter_operand(graph, weight)
    depth = weight.size[1] * weight.size[2] * weight.size[3]
    rows, constant = images * out_height * out_width, graph.is_constant_buffer(filters.buffer)
    if is_product(source, shape):
        operands = {
            "a": Operand(source.buffer, source.offset, (source.strides[3], 1)),
            "b": Operand(filters.buffer, filters.offset, (1, as_size(depth))),
        }
        made = graph.template(
            "gemm", size, input.dtype, rows, outputs, operands, depth=depth, packed_once=constant,
            **costs.passes(rows, outputs, depth),
        )  # fmt: skip
    else:
        fast = not graph.target.reads_blocks and is_winograd(source, shape, out_height, out_width, constant)
        if source.strides[1] != 1 and (fast or _is_worth_reordering(graph, shape, out_height, out_width)):
            source = _copy_channels_last(graph, input)
        operands = {"input": source, "weight": filters}
        made = graph.template(
            "winograd" if fast else "direct_convolution", size, input.dtype, rows, outputs, operands, shape=shape, depth=depth,
            packed_once=constant,
        )  # fmt: skip
    return as_channels_first(made)


def is_product(source: Operand, shape: tuple) -> bool:
    """Return whether the convolution is a matrix product: a 1 x 1 kernel on pixels that are rows of a matrix in memory."""
    images, channels, height, width, _, *kernel_and_steps, _ = as_sizes(shape)
    if tuple(kernel_and_steps[:6]) != (1, 1, 1, 1, 0, 0):
        return False
    pixel = source.strides[3]
    wanted = as_sizes((height * width * pixel, 1, width * pixel, pixel))
    return same_strides((images, channels, height, width), source.strides, wanted)


def _copy_channels_last(graph, input: TensorBox) -> Operand:
    return graph.operand(as_channels_first(graph.copy(as_channels_last(input))), input.size)


def _is_worth_reordering(graph, shape: tuple, out_height: Size, out_width: Size) -> bool:
    """Return whether a direct convolution is faster on a channels-last copy."""
    images, channels, height, width, outputs, *kernel, groups = map(hint, (*shape[:7], shape[-1]))
    if graph.target.reads_blocks:
        return channels >= MIN_BLOCK
    if groups != 1 or channels < costs.MANY_CHANNELS:
        return False
    direct = costs.direct_convolution(images * hint(out_height), hint(out_width), math.prod(kernel), channels, outputs)
    return costs.reordering(images * channels * height * width) < costs.CHANNELS_FIRST * direct


def can_be_winograd(shape: tuple) -> bool:
    """Return whether Winograd's algorithm applies to a convolution: 3 x 3 with stride and dilation 1."""
    kernel_and_steps = tuple(map(hint, shape[5:]))
    return (*kernel_and_steps[:4], *kernel_and_steps[6:8]) == (3, 3, 1, 1, 1, 1)


def is_winograd(source: Operand, shape: tuple, out_height: Size, out_width: Size, constant: bool) -> bool:
    """Return whether Winograd's algorithm is faster for a convolution. Weights that are not constant are transformed in every
    call."""
    if not can_be_winograd(shape):
        return False
    images, channels, height, width, outputs = map(hint, shape[:5])
    out_height, out_width = hint(out_height), hint(out_width)
    fast = costs.winograd(images * -(-out_height // 4) * -(-out_width // 4), channels, outputs)
    if source.strides[1] != 1:
        fast += costs.reordering(images * channels * height * width)
    if not constant:
        fast += costs.winograd_packing(channels, outputs)
    return fast < costs.direct_convolution(images * out_height, out_width, 9, channels, outputs)


def is_winograd_weight(shape: tuple, grad: tuple) -> bool:
    """Return whether Winograd's algorithm is faster for a weight's gradient; `grad` is the size of the result's gradient."""
    if not can_be_winograd(shape):
        return False
    channels, outputs, groups = hint(shape[1]), hint(shape[4]), hint(shape[-1])
    images, _, height, width = map(hint, grad)
    return groups == 1 and costs.winograd_weight(images, height, width, channels, outputs)
