"""Lowering of 1-D, 2-D and 3-D convolutions, plain or transposed, to 2-D ones.

One dimension is an image with one row. Three dimensions are images whose channels include the taps in depth; or, for many
channels, a sum of 2-D convolutions, one per tap. A transposed 2-D convolution is the gradient of a plain one's input. If no
template computes it, it becomes a plain convolution with an output channel for each place between two inputs, and the results
are interleaved (Shi et al. 2016, "Real-Time Single Image and Video Super-Resolution").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rushlight.core.dtype import bool_, float32
from rushlight.inductor import costs
from rushlight.inductor.ir import Constant
from rushlight.inductor.lowering.builder import call, masked
from rushlight.inductor.lowering.convolution_input import Geometry, as_images, image_input_gradient
from rushlight.inductor.lowering.convolutions import as_channels_first, as_channels_last, convolution
from rushlight.inductor.lowering.indexing import constant_pad_nd, is_within
from rushlight.inductor.lowering.pointwise import add
from rushlight.inductor.lowering.products import as_factor, in_float32, in_type
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.lowering.volumes import by_positions, gradient_by_positions
from rushlight.inductor.lowering.word_convolutions import convolution_by_words, multiplies_by_words
from rushlight.inductor.sizes import hint
from rushlight.inductor.tensor_box import TensorBox


@lowering("convolution")
def convolve(graph, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    kind = input.dtype
    if not transposed and multiplies_by_words(graph, input, weight, groups):
        made = _convolve_by_words(graph, input, weight, stride, padding, dilation)
        return in_type(graph, _add_bias(graph, made, bias if bias is None else in_float32(graph, bias)), kind)
    if kind is not float32:
        input, weight, bias = (box if box is None else as_factor(graph, box) for box in (input, weight, bias))
    if not transposed:
        return in_type(graph, plain_convolution(graph, input, weight, bias, stride, padding, dilation, groups), kind)
    made = transposed_convolution(graph, input, weight, stride, padding, dilation, output_padding, groups)
    return in_type(graph, _add_bias(graph, made, bias), kind)


def _convolve_by_words(graph, input, weight, stride, padding, dilation) -> TensorBox:
    if len(weight.size) == 4:
        return convolution_by_words(graph, input, weight, stride, padding, dilation)
    image, filters = as_images(input), as_images(weight)
    return as_rows(convolution_by_words(graph, image, filters, [1, *stride], [0, *padding], [1, *dilation]))


def plain_convolution(graph, input, weight, bias, stride, padding, dilation, groups) -> TensorBox:
    """Return a plain convolution of any rank."""
    made = by_positions(graph, input, weight, stride, padding, dilation, groups)
    if made is not None:
        return _add_bias(graph, made, bias)
    if len(weight.size) == 3:
        return _convolve_rows(graph, input, weight, bias, stride, padding, dilation, groups)
    if len(weight.size) == 5:
        return _add_bias(graph, _convolve_volumes(graph, input, weight, stride, padding, dilation, groups), bias)
    return convolution(graph, input, weight, bias, stride, padding, dilation, groups)


def _add_bias(graph, made: TensorBox, bias: TensorBox | None) -> TensorBox:
    return made if bias is None else add(graph, made, bias.reshape((1, made.size[1], *[1] * (len(made.size) - 2))))


def _convolve_rows(graph, input, weight, bias, stride, padding, dilation, groups) -> TensorBox:
    image, filters = as_images(input), as_images(weight)
    made = convolution(graph, image, filters, bias, [1, *stride], [0, *padding], [1, *dilation], groups)
    rows = as_rows(made)
    if made in graph.scaled_forms:
        graph.scaled_forms[rows] = lambda scale: as_rows(graph.scaled_forms[made](scale))
    return rows


def as_rows(images: TensorBox) -> TensorBox:
    """View images with one row as 1-D signals."""
    return images.reshape((*images.size[:2], images.size[3]))


def _convolve_volumes(graph, input, weight, stride, padding, dilation, groups) -> TensorBox:
    images = Volumes(graph, input, weight.size, stride, padding, dilation, groups)
    if images.are_joined:
        filters = weight.view((weight.size[0], images.taps * images.each, *weight.size[3:]), images.of_weight)
        total = convolution(graph, images.joined(), filters, None, stride[1:], padding[1:], dilation[1:], groups)
    else:
        total = None
        for tap in range(images.taps):
            filters = weight.view(
                (*weight.size[:2], *weight.size[3:]), lambda index, tap=tap: [*index[:2], tap, *index[2:]]
            )
            part = convolution(graph, images.at(tap), filters, None, stride[1:], padding[1:], dilation[1:], groups)
            total = part if total is None else add(graph, total, part)
    _, outputs, *sizes = total.size
    layers = images.layers
    return total.view(
        (images.volumes, outputs, layers, *sizes), lambda index: [index[0] * layers + index[2], index[1], *index[3:]]
    )


class Volumes:
    """The inputs of a 3-D convolution's taps in depth as images: one image for each layer of the result."""

    def __init__(self, graph, input, weight: tuple, stride, padding, dilation, groups):
        graph.realize(input)
        outputs, self.each, self.taps, *_ = weight
        self.input = constant_pad_nd(graph, input, [0, 0, 0, 0, padding[0], padding[0]]) if padding[0] else input
        self.graph, self.step, self.spread = graph, stride[0], dilation[0]
        self.volumes, _, depth, *_ = self.input.size
        self.layers = (depth - self.spread * (self.taps - 1) - 1) // self.step + 1
        # Summing taps separately reads and writes the results once per tap. Joining the taps copies the input once per tap
        # instead.
        self.are_joined = self.taps * self.each * groups <= 2 * (self.taps - 1) * outputs

    def at(self, tap: int) -> TensorBox:
        """Return the images that one tap reads."""
        self.graph.realize(self.input)
        return self._gather_images(self.input.size[1], lambda channel: (channel, tap))

    def joined(self) -> TensorBox:
        """Return images with all taps as additional channels of their groups, as a channels-last copy."""

        def place(channel):
            group, own = channel // (self.taps * self.each), channel % self.each
            return group * self.each + own, channel // self.each % self.taps

        images = self._gather_images(self.taps * self.input.size[1], place)
        return as_channels_first(self.graph.copy(as_channels_last(images)))

    def of_weight(self, index) -> list:
        """Return the index in the 3-D weight of the element [O, channel of `joined`, ...]."""
        return [index[0], index[1] % self.each, index[1] // self.each, *index[2:]]

    def _gather_images(self, channels, position) -> TensorBox:
        def layer(index):
            channel, tap = position(index[1])
            return [index[0] // self.layers, channel, index[0] % self.layers * self.step + tap * self.spread, *index[2:]]

        return self.input.view((self.volumes * self.layers, channels, *self.input.size[3:]), layer)


@dataclass(frozen=True, slots=True)
class _Interleaving:
    """A transposed convolution along one dimension. With t = y + padding, output `y` reads tap e (scaled by the dilation) of
    input i if t = i * step + e. Outputs with equal t % step use the same taps, at most `taps` of them."""

    inputs: int
    outputs: int
    step: int
    padding: int
    dilation: int
    reach: int

    @property
    def taps(self) -> int:
        return -(-self.reach // self.step)

    @property
    def missing(self) -> int:
        """The number of zeros to append to the inputs, because the last output reads past them."""
        return max(0, (self.outputs - 1 + self.padding) // self.step - (self.inputs + self.taps - 2))


def transposed_convolution(graph, input, weight, stride, padding, dilation, output_padding, groups) -> TensorBox:
    """Return a transposed convolution without bias; the weight is [C, O / groups, ...]."""
    narrow = groups == 1 and len(input.size) < 5 and costs.interleaves(hint(weight.size[1]), math.prod(stride))
    if not narrow and all(extra < step for extra, step in zip(output_padding, stride, strict=True)):
        geometry = Geometry(tuple(stride), tuple(padding), tuple(dilation), groups)
        made = _as_gradient(graph, input, weight, geometry, output_padding)
        if made is not None:
            return made
    ways = []
    for dim, size in enumerate(input.size[2:]):
        reach = dilation[dim] * (weight.size[2 + dim] - 1) + 1
        outputs = (size - 1) * stride[dim] + reach + output_padding[dim] - 2 * padding[dim]
        ways.append(_Interleaving(size, outputs, stride[dim], padding[dim], dilation[dim], reach))
    if any(way.missing for way in ways):
        input = constant_pad_nd(graph, input, [count for way in reversed(ways) for count in (0, way.missing)])
    filters = _interleaved_weight(graph, weight, ways, groups)
    ones = [1] * len(ways)
    made = plain_convolution(graph, input, filters, None, ones, [way.taps - 1 for way in ways], ones, groups)

    def place(index):
        channel, spatial = index[1], []
        for way, position in zip(ways, index[2:], strict=True):
            at = position + way.padding
            channel = channel * way.step + at % way.step
            spatial.append(at // way.step)
        return [index[0], channel, *spatial]

    outputs = made.size[1] // math.prod(way.step for way in ways)
    return made.view((made.size[0], outputs, *(way.outputs for way in ways)), place)


def _as_gradient(graph, input: TensorBox, weight: TensorBox, geometry: Geometry, output_padding) -> TensorBox | None:
    """Compute the transposed convolution by the input gradient's template; None if there is none."""
    outputs = []
    for dim, (inputs, extra) in enumerate(zip(input.size[2:], output_padding, strict=True)):
        reach = geometry.dilation[dim] * (weight.size[2 + dim] - 1) + 1
        outputs.append((inputs - 1) * geometry.stride[dim] + reach + extra - 2 * geometry.padding[dim])
    size = (input.size[0], weight.size[1] * geometry.groups, *outputs)
    if len(outputs) == 3:
        return gradient_by_positions(graph, input, weight, size, geometry)
    return image_input_gradient(graph, input, weight, size, geometry)


def _interleaved_weight(graph, weight: TensorBox, ways: list[_Interleaving], groups: int) -> TensorBox:
    """Return the weight of the plain convolution: [O * steps, C / groups, taps...], zero where there is no tap."""
    graph.realize(weight)
    channels, group_outputs = weight.size[0] // groups, weight.size[1]
    positions = math.prod(way.step for way in ways)

    def inner(index):
        place, channel, *taps = index
        output, mask, at = place // positions, None, []
        rest = place % positions
        for position, way in enumerate(ways):
            rest_places = math.prod(later.step for later in ways[position + 1 :])
            spread = rest // rest_places % way.step + (way.taps - 1 - taps[position]) * way.step
            test = is_within(spread, way.reach, way.dilation)
            mask = test if mask is None else call("logical_and", bool_, mask, test)
            at.append(spread // way.dilation)
        source = [output // group_outputs * channels + channel, output % group_outputs, *at]
        return masked(weight.dtype, mask, weight.value(source), Constant(weight.dtype, 0.0))

    size = (group_outputs * groups * positions, channels, *(way.taps for way in ways))
    return graph.realize(graph.pointwise(size, weight.dtype, inner), row_major=True)
