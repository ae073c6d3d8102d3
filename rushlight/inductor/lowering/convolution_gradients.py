"""Lowering of the gradients of convolutions, of every rank, plain or transposed.

In two dimensions each is a template: the gradient of the input, with results channels-last, and that of the weight. One
dimension is a row of an image. Three dimensions are taps in depth, each of images. A transposed convolution is the gradient
of a plain one, so that its own gradients are a plain convolution, and the weight's gradient with the roles exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rushlight.core.dtype import float32
from rushlight.inductor.ir import Operand
from rushlight.inductor.lowering.convolutions import as_channels_first, contiguous_operand, is_depthwise, is_product
from rushlight.inductor.lowering.indexing import cat, constant_pad_nd
from rushlight.inductor.lowering.products import in_float32, in_type
from rushlight.inductor.lowering.reductions import sum_
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.lowering.spatial import plain_convolution, transposed_convolution
from rushlight.inductor.sizes import as_size, quotient
from rushlight.inductor.tensor_box import TensorBox


@dataclass(frozen=True)
class Geometry:
    """How a plain convolution steps over its input, by dimension."""

    stride: tuple
    padding: tuple
    dilation: tuple
    groups: int

    @property
    def of_images(self) -> Geometry:
        """The same for an image's two dimensions: those of a row, or the last two of a volume."""
        if len(self.stride) == 1:
            return replace(self, stride=(1, *self.stride), padding=(0, *self.padding), dilation=(1, *self.dilation))
        return replace(self, stride=self.stride[-2:], padding=self.padding[-2:], dilation=self.dilation[-2:])


@lowering("convolution_backward")
def convolution_backward(
    graph, grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):  # fmt: skip
    kind = grad_output.dtype
    geometry = Geometry(tuple(stride), tuple(padding), tuple(dilation), groups)
    grad, source, filters = (graph.realize(in_float32(graph, box)) for box in (grad_output, input, weight))
    to_input = to_weight = to_bias = None
    if output_mask[0] and transposed:
        to_input = plain_convolution(graph, grad, filters, stride, padding, dilation, groups)
    elif output_mask[0]:
        to_input = input_gradient(graph, grad, filters, source.size, geometry)
    if output_mask[1]:
        wide, narrow = (grad, source) if transposed else (source, grad)
        to_weight = weight_gradient(graph, wide, narrow, filters.size, geometry)
    if output_mask[2]:
        to_bias = sum_(graph, grad, [0, *range(2, len(grad.size))], dtype=float32)
    return tuple(box if box is None else in_type(graph, box, kind) for box in (to_input, to_weight, to_bias))


# The input


def input_gradient(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    """The gradient of the input of `size` of a plain convolution."""
    if len(weight.size) == 3:
        image, filters = _as_images(grad), _as_images(weight)
        return input_gradient(graph, image, filters, (*size[:2], 1, size[2]), geometry.of_images).reshape(size)
    if len(weight.size) == 4 and geometry.groups == 1:
        return _image_input(graph, grad, weight, size, geometry)
    if len(weight.size) == 4 and is_depthwise(graph, grad, weight, geometry.groups):
        return _depthwise_input(graph, grad, weight, size, geometry)
    return _by_transposing(graph, grad, weight, size, geometry)


def _as_images(box: TensorBox) -> TensorBox:
    return box.reshape((*box.size[:2], 1, box.size[2]))


def _image_input(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    images, channels, height, width = size
    outputs, _, *kernel = weight.size
    source, filters = _operand(graph, grad), contiguous_operand(graph, weight)
    rows, layout = images * height * width, (images, height, width, channels)
    constant = graph.is_constant_buffer(filters.buffer)
    shape = _shape(size, weight.size, geometry)
    if is_product(source, _shape(grad.size, weight.size, geometry)):
        operands = {
            "a": Operand(source.buffer, source.offset, (source.strides[3], 1)),
            "b": Operand(filters.buffer, filters.offset, (as_size(channels), 1)),
        }
        made = graph.template(
            "gemm", layout, float32, rows, channels, operands, depth=outputs, packed_once=constant
        )
    else:
        phase = quotient(as_size(width), geometry.stride[1])
        made = graph.template(
            "convolution_input", layout, float32, rows, channels, {"grad": source, "weight": filters}, shape=shape,
            depth=outputs * kernel[0] * kernel[1], packed_once=constant, phase_width=phase if isinstance(phase, int) else 0,
        )  # fmt: skip
    return as_channels_first(made)


def _depthwise_input(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    images, channels, height, width = size
    filters = contiguous_operand(graph, weight)
    made = graph.template(
        "depthwise_input", (images, height, width, channels), float32, images * height * width, channels,
        {"grad": graph.operand(grad, grad.size), "weight": filters}, shape=_shape(size, weight.size, geometry),
        depth=weight.size[2] * weight.size[3], packed_once=graph.is_constant_buffer(filters.buffer),
    )  # fmt: skip
    return as_channels_first(made)


def _operand(graph, box: TensorBox) -> Operand:
    return graph.operand(box, box.size) or graph.operand(graph.copy(box), box.size)


def _shape(size: tuple, weight: tuple, geometry: Geometry) -> tuple:
    """The members of an rl::conv_shape."""
    return (*size, weight[0], *weight[2:], *geometry.stride, *geometry.padding, *geometry.dilation, geometry.groups)


def _by_transposing(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    """As a transposed convolution, which leaves out what no window of the input covers; without steps, as a plain one."""
    ways = zip(weight.size[2:], geometry.padding, geometry.dilation, strict=True)
    border = [spread * (kernel - 1) - pad for kernel, pad, spread in ways]
    if all(step == 1 for step in geometry.stride) and min(border) >= 0:
        flipped, ones = _flipped(weight, geometry.groups), geometry.stride
        return plain_convolution(graph, grad, flipped, ones, border, geometry.dilation, geometry.groups)
    missing = []
    for extent, out, rest, step, pad in zip(
        size[2:], grad.size[2:], border, geometry.stride, geometry.padding, strict=True
    ):
        missing.append(extent - ((out - 1) * step - pad + rest + 1))
    return transposed_convolution(
        graph, grad, weight, geometry.stride, geometry.padding, geometry.dilation, missing, geometry.groups
    )


def _flipped(weight: TensorBox, groups: int) -> TensorBox:
    """The weight of the convolution that goes back, [C, O / g, ...]."""
    outputs, channels, *kernel = weight.size
    each = outputs // groups

    def turned(index):
        taps = [size - 1 - tap for size, tap in zip(kernel, index[2:], strict=True)]
        return [index[0] // channels * each + index[1], index[0] % channels, *taps]

    return weight.view((groups * channels, each, *kernel), turned)


# The weight


def weight_gradient(graph, source: TensorBox, grad: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    """The gradient of the weight of `size` of a plain convolution of `source`."""
    if len(size) == 3:
        images = (_as_images(source), _as_images(grad), (*size[:2], 1, size[2]))
        return _image_weight(graph, *images, geometry.of_images).reshape(size)
    if len(size) == 5:
        return _volume_weight(graph, source, grad, size, geometry)
    return _image_weight(graph, source, grad, size, geometry)


def _image_weight(graph, source: TensorBox, grad: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    outputs, channels, *kernel = size
    kind = "convolution_weight"
    if outputs == geometry.groups > 1 and _lies_channels_last(graph, source):
        kind, operands = "depthwise_weight", {"input": _operand(graph, source), "grad": _channels_last(graph, grad)}
    elif channels == 1 and geometry.groups > 1:
        operands = {"input": contiguous_operand(graph, source), "grad": contiguous_operand(graph, grad)}
    else:
        operands = {"input": _operand(graph, source), "grad": _channels_last(graph, grad)}
    each = channels * kernel[0] * kernel[1]
    pixels = grad.size[0] * grad.size[2] * grad.size[3]
    shape = _shape(source.size, size, geometry)
    return graph.template(kind, size, float32, outputs, each, operands, shape=shape, depth=pixels)


def _lies_channels_last(graph, box: TensorBox) -> bool:
    found = graph.operand(box, box.size)
    return found is not None and found.strides[1] == 1


def _channels_last(graph, box: TensorBox) -> Operand:
    found = graph.operand(box, box.size)
    if found is not None and (found.strides[1] == 1 or as_size(box.size[1]) == 1):
        return found
    images, channels, height, width = box.size
    moved = graph.copy(box.view((images, height, width, channels), lambda index: [index[0], index[3], index[1], index[2]]))
    return graph.operand(moved.view(box.size, lambda index: [index[0], index[2], index[3], index[1]]), box.size)


def _volume_weight(graph, source: TensorBox, grad: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    """Tap by tap in depth: a volume's layers, taken together with those of the gradient, are so many images."""
    step, spread, pad = geometry.stride[0], geometry.dilation[0], geometry.padding[0]
    if pad:
        source = constant_pad_nd(graph, source, [0, 0, 0, 0, pad, pad])
    graph.realize(source)
    volumes, layers = source.size[0], grad.size[2]

    def images(box: TensorBox, first: int, step: int) -> TensorBox:
        return box.view(
            (volumes * layers, box.size[1], *box.size[3:]),
            lambda index: [index[0] // layers, index[1], index[0] % layers * step + first, *index[2:]],
        )

    of_grad, each = images(grad, 0, 1), (*size[:2], *size[3:])
    parts = []
    for tap in range(size[2]):
        part = _image_weight(graph, images(source, tap * spread, step), of_grad, each, geometry.of_images)
        parts.append(part.reshape((*size[:2], 1, *size[3:])))
    return cat(graph, parts, 2)
