"""Lowering of a convolution's input gradient to templates with channels-last results.

Transposed convolutions use these rules, too, because a transposed convolution is the input gradient of a plain one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rushlight.core.dtype import float32
from rushlight.inductor.ir import Operand
from rushlight.inductor.lowering.convolutions import (
    MIN_BLOCK,
    as_channels_first,
    can_be_winograd,
    channels_last_operand,
    contiguous_operand,
    filter_operand,
    has_filter_each,
    has_narrow_groups,
    is_product,
    is_winograd,
    lies_channels_last,
)
from rushlight.inductor.sizes import as_size, as_sizes, hint
from rushlight.inductor.tensor_box import TensorBox


@dataclass(frozen=True)
class Geometry:
    """Stride, padding and dilation of a plain convolution, by dimension, and its groups."""

    stride: tuple
    padding: tuple
    dilation: tuple
    groups: int

    @property
    def of_images(self) -> Geometry:
        """The geometry in an image's two dimensions: 1-D rows get a dimension of 1, 3-D volumes drop the depth."""
        if len(self.stride) == 1:
            return replace(self, stride=(1, *self.stride), padding=(0, *self.padding), dilation=(1, *self.dilation))
        return replace(self, stride=self.stride[-2:], padding=self.padding[-2:], dilation=self.dilation[-2:])


def image_input_gradient(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox | None:
    """Return the gradient of a 1-D or 2-D convolution's input, which has `size`; None if no template computes it."""
    if len(weight.size) == 3:
        made = image_input_gradient(
            graph, as_images(grad), as_images(weight), (*size[:2], 1, size[2]), geometry.of_images
        )  # fmt: skip
        return None if made is None else made.reshape(size)
    if len(weight.size) == 4 and geometry.groups == 1:
        return _lower_general(graph, grad, weight, size, geometry)
    if len(weight.size) == 4 and has_filter_each(weight, geometry.groups) and (
        max(geometry.stride) > 1 or lies_channels_last(graph, grad)
    ):
        return _lower_depthwise(graph, grad, weight, size, geometry)
    if len(weight.size) == 4 and has_narrow_groups(weight, geometry.groups):
        return _lower_narrow_groups(graph, grad, weight, size, geometry)
    return None


def as_images(box: TensorBox) -> TensorBox:
    """View 1-D signals as images with one row."""
    return box.reshape((*box.size[:2], 1, box.size[2]))


def _lower_by_winograd(graph, grad: TensorBox, filters: Operand, size: tuple, shape: tuple) -> TensorBox | None:
    """Return the gradient by Winograd's algorithm, as a convolution with the flipped weight; None if another way is faster."""
    images, channels, height, width = size
    outputs, pads = shape[4], [2 - pad for pad in shape[9:11]]
    back = (images, outputs, *_size_after(shape), channels, *shape[5:9], *pads, *shape[11:])
    constant = graph.is_constant_buffer(filters.buffer)
    if min(pads) < 0 or not is_winograd(any_operand(graph, grad), back, height, width, constant):
        return None
    end = as_size(filters.offset + 2 * (filters.strides[2] + filters.strides[3]))
    steps = (filters.strides[1], filters.strides[0], *(as_size(-step) for step in filters.strides[2:]))
    operands = {"input": channels_last_operand(graph, grad), "weight": Operand(filters.buffer, end, steps)}
    made = graph.template(
        "winograd", (images, height, width, channels), float32, images * height * width, channels, operands, shape=back,
        depth=9 * outputs, packed_once=constant,
    )  # fmt: skip
    return as_channels_first(made)


def _size_after(shape: tuple) -> tuple:
    """Return the height and width of a 3 x 3 convolution's result at stride 1."""
    return tuple(extent + 2 * pad - 2 for extent, pad in zip(shape[2:4], shape[9:11], strict=True))


def _lower_general(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    images, channels, height, width = size
    outputs, _, *kernel = weight.size
    source, filters = image_operand(graph, grad), filter_operand(graph, weight)
    rows, layout = images * height * width, (images, height, width, channels)
    constant = graph.is_constant_buffer(filters.buffer)
    shape = conv_shape(size, weight.size, geometry)
    if can_be_winograd(shape) and not graph.target.reads_blocks:
        made = _lower_by_winograd(graph, grad, filters, size, shape)
        if made is not None:
            return made
    if is_product(source, conv_shape(grad.size, weight.size, geometry)):
        operands = {
            "a": Operand(source.buffer, source.offset, (source.strides[3], 1)),
            "b": Operand(filters.buffer, filters.offset, (as_size(channels), 1)),
        }
        made = graph.template(
            "gemm", layout, float32, rows, channels, operands, depth=outputs, packed_once=constant
        )
    else:
        made = graph.template(
            "convolution_input", layout, float32, rows, channels, {"grad": source, "weight": filters}, shape=shape,
            depth=outputs * kernel[0] * kernel[1], packed_once=constant,
        )  # fmt: skip
    return as_channels_first(made)


def _lower_depthwise(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    images, channels, height, width = size
    filters = contiguous_operand(graph, weight)
    made = graph.template(
        "depthwise_input", (images, height, width, channels), float32, images * height * width, channels,
        {"grad": channels_last_operand(graph, grad), "weight": filters}, shape=conv_shape(size, weight.size, geometry),
        depth=weight.size[2] * weight.size[3], packed_once=graph.is_constant_buffer(filters.buffer),
    )  # fmt: skip
    return as_channels_first(made)


def _lower_narrow_groups(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry: Geometry) -> TensorBox:
    images, channels, height, width = size
    filters, (outputs, each, *kernel) = contiguous_operand(graph, weight), as_sizes(weight.size)
    given = outputs // geometry.groups
    made = graph.template(
        "grouped_input", (images, height, width, channels), float32, images * height * width, channels,
        {"grad": channels_last_operand(graph, grad), "weight": filters}, shape=conv_shape(size, weight.size, geometry),
        depth=given * kernel[0] * kernel[1], each=(given, each), packed_once=graph.is_constant_buffer(filters.buffer),
    )  # fmt: skip
    return as_channels_first(made)


def any_operand(graph, box: TensorBox) -> Operand:
    """Return the box as a strided operand; copies if necessary."""
    return graph.operand(box, box.size) or graph.operand(graph.copy(box, row_major=False), box.size)


def image_operand(graph, box: TensorBox) -> Operand:
    """Return images as a strided operand, channels-last if the target reads blocks of channels."""
    if graph.target.reads_blocks and hint(box.size[1]) >= MIN_BLOCK:
        return channels_last_operand(graph, box)
    return any_operand(graph, box)


def conv_shape(size: tuple, weight: tuple, geometry: Geometry) -> tuple:
    """Return the members of an rl::conv_shape."""
    return (*size, weight[0], *weight[2:], *geometry.stride, *geometry.padding, *geometry.dilation, geometry.groups)
