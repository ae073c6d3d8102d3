"""Lowering of convolution gradients, of every rank, plain or transposed.

In two dimensions each is a template: the gradient of the input (see `convolution_input`), and of the weight. One dimension is
an image with one row. Three dimensions are images whose channels include the taps in depth. A transposed convolution is the
gradient of a plain one, so its input's gradient is a plain convolution, and its weight's gradient has input and gradient
exchanged.
"""

from __future__ import annotations

from rushlight.core.dtype import float32
from rushlight.inductor.lowering.convolution_input import (
    Geometry,
    any_operand,
    as_images,
    channels_last_operand,
    conv_shape,
    image_input_gradient,
    image_operand,
)
from rushlight.inductor.lowering.convolutions import (
    as_channels_first,
    contiguous_operand,
    is_winograd_weight,
    lies_channels_last,
)
from rushlight.inductor.lowering.indexing import constant_pad_nd
from rushlight.inductor.lowering.products import as_factor, in_type
from rushlight.inductor.lowering.reductions import sum_
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.lowering.spatial import Volumes, plain_convolution, transposed_convolution
from rushlight.inductor.tensor_box import TensorBox


@lowering("convolution_backward")
def convolution_backward(
    graph, grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):  # fmt: skip
    kind = grad_output.dtype
    geometry = Geometry(tuple(stride), tuple(padding), tuple(dilation), groups)
    grad, source, filters = (graph.realize(as_factor(graph, box)) for box in (grad_output, input, weight))
    to_input = to_weight = to_bias = None
    if output_mask[0] and transposed:
        to_input = plain_convolution(graph, grad, filters, None, stride, padding, dilation, groups)
        if any(_count_further_windows(output_padding, stride)):
            to_input = to_input.view(source.size, lambda index: index)
    elif output_mask[0]:
        to_input = input_gradient(graph, grad, filters, source.size, geometry)
    if output_mask[1]:
        wide, narrow = (grad, source) if transposed else (source, grad)
        if transposed and any(further := _count_further_windows(output_padding, stride)):
            narrow = constant_pad_nd(graph, narrow, [count for more in reversed(further) for count in (0, more)])
        to_weight = weight_gradient(graph, wide, narrow, filters, geometry)
    if output_mask[2]:
        to_bias = sum_(graph, grad, [0, *range(2, len(grad.size))], dtype=float32)
    return tuple(box if box is None else in_type(graph, box, kind) for box in (to_input, to_weight, to_bias))


def _count_further_windows(output_padding: list[int], stride: list[int]) -> list[int]:
    """Return the number of additional windows in each dimension that output padding makes room for."""
    return [more // step for more, step in zip(output_padding, stride, strict=True)]


# The gradient of the input


def input_gradient(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    """Return the gradient of a plain convolution's input, which has `size`."""
    made = image_input_gradient(graph, grad, weight, size, geometry)
    return _gradient_by_transposing(graph, grad, weight, size, geometry) if made is None else made


def _gradient_by_transposing(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    """Return the gradient as a transposed convolution, cropped to the input's size; with stride 1 as a plain convolution."""
    ways = zip(weight.size[2:], geometry.padding, geometry.dilation, strict=True)
    border = [spread * (kernel - 1) - pad for kernel, pad, spread in ways]
    if all(step == 1 for step in geometry.stride) and min(border) >= 0:
        flipped, ones = _flip_weight(weight, geometry.groups), geometry.stride
        return plain_convolution(graph, grad, flipped, None, ones, border, geometry.dilation, geometry.groups)
    missing = []
    for extent, out, rest, step, pad in zip(
        size[2:], grad.size[2:], border, geometry.stride, geometry.padding, strict=True
    ):
        missing.append(extent - ((out - 1) * step - pad + rest + 1))
    return transposed_convolution(
        graph, grad, weight, geometry.stride, geometry.padding, geometry.dilation, missing, geometry.groups
    )


def _flip_weight(weight: TensorBox, groups: int) -> TensorBox:
    """Return the weight for the backward convolution, flipped and transposed: [C, O / g, ...]."""
    outputs, channels, *kernel = weight.size
    each = outputs // groups

    def turned(index):
        taps = [size - 1 - tap for size, tap in zip(kernel, index[2:], strict=True)]
        return [index[0] // channels * each + index[1], index[0] % channels, *taps]

    return weight.view((groups * channels, each, *kernel), turned)


# The gradient of the weight


def weight_gradient(graph, source: TensorBox, grad: TensorBox, weight: TensorBox, geometry: Geometry) -> TensorBox:
    """Return the gradient of a plain convolution's weight; for images in the weight's memory order."""
    size = weight.size
    if len(size) == 3:
        images = (as_images(source), as_images(grad), (*size[:2], 1, size[2]))
        return _gradient_of_image_weight(graph, *images, geometry.of_images).reshape(size)
    if len(size) == 5:
        return _gradient_of_volume_weight(graph, source, grad, size, geometry)
    last = lies_channels_last(graph, weight) or graph.target.reads_blocks
    if 1 in (size[1], size[2] * size[3]) or not last:
        return _gradient_of_image_weight(graph, source, grad, size, geometry)
    return as_channels_first(_gradient_of_image_weight(graph, source, grad, size, geometry, last=True))


def _gradient_of_image_weight(
    graph, source: TensorBox, grad: TensorBox, size: tuple, geometry: Geometry, last: bool = False
) -> TensorBox:
    """Return [O, C / g, kh, kw], or [O, kh, kw, C / g] if `last`."""
    outputs, channels, *kernel = size
    shape = conv_shape(source.size, size, geometry)
    kind, winograd = "convolution_weight", not graph.target.reads_blocks and is_winograd_weight(shape, grad.size)
    if winograd:
        operands = {"input": channels_last_operand(graph, source), "grad": channels_last_operand(graph, grad)}
    elif channels == 1 and outputs == geometry.groups > 1 and lies_channels_last(graph, source):
        kind, operands = "depthwise_weight", {"input": any_operand(graph, source), "grad": channels_last_operand(graph, grad)}
    elif channels == 1 and geometry.groups > 1:
        operands = {"input": contiguous_operand(graph, source), "grad": contiguous_operand(graph, grad)}
    else:
        operands = {"input": image_operand(graph, source), "grad": channels_last_operand(graph, grad)}
    each = channels * kernel[0] * kernel[1]
    pixels = grad.size[0] * grad.size[2] * grad.size[3]
    layout = (outputs, *kernel, channels) if last else size
    return graph.template(
        kind, layout, float32, outputs, each, operands, shape=shape, depth=pixels, last=last, winograd=winograd
    )  # fmt: skip


def _gradient_of_volume_weight(graph, source: TensorBox, grad: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    """Return a 3-D weight gradient as a 2-D one: the layers are images, the taps in depth additional channels."""
    volumes = Volumes(graph, source, size, geometry.stride, geometry.padding, geometry.dilation, geometry.groups)
    layers, each, taps = volumes.layers, volumes.each, volumes.taps
    of_grad = grad.view(
        (volumes.volumes * layers, grad.size[1], *grad.size[3:]),
        lambda index: [index[0] // layers, index[1], index[0] % layers, *index[2:]],
    )
    made = _gradient_of_image_weight(graph, volumes.joined(), of_grad, (size[0], taps * each, *size[3:]), geometry.of_images)
    return made.view(size, lambda index: [index[0], index[2] * each + index[1], *index[3:]])
