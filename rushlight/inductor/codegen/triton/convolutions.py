"""Convolutions and their gradients as implicit products: the factors' elements are those of images and filters.

In: a template of a convolution. Out: a `Product`, or, for one filter per channel, the terms of a sum over its taps. Images of
two dimensions count as volumes with a depth of 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from rushlight.core.algebra import Expr, as_expr, unflatten_index
from rushlight.core.dtype import bool_, float32
from rushlight.inductor.codegen.triton.products import Product
from rushlight.inductor.ir import Buffer, Constant, Load, Operand, TemplateBuffer, Value
from rushlight.inductor.lowering.builder import call, cast, index_value, masked
from rushlight.inductor.sizes import Size, as_size, row_major

Place = Sequence[Expr]
CHANNELS_LAST = (
    "direct_convolution", "winograd", "word_convolution", "depthwise", "grouped", "convolution_input", "depthwise_input",
    "grouped_input",
)  # fmt: skip
FORWARD = ("direct_convolution", "winograd", "word_convolution", "depthwise", "grouped", "convolution", "volumes")
BACKWARD = ("convolution_input", "depthwise_input", "grouped_input", "volumes_input")
OF_WEIGHTS = ("convolution_weight", "depthwise_weight")


@dataclass(frozen=True)
class Axis:
    """A spatial axis: the input's and the result's sizes, the number of taps, stride, padding and dilation."""

    size: Size
    out: Size
    taps: Size
    step: Size
    pad: Size
    spread: Size

    def input_place(self, out: Expr, tap: Expr) -> Expr:
        """Return the input's place that a tap reads for a result."""
        return out * self.step - self.pad + tap * self.spread


def _inside(place: Expr, size: Size) -> Value:
    zero, end = Constant(index_value(place).dtype, 0), index_value(size)
    last = Constant(end.dtype, size) if isinstance(size, int) else end
    return call(
        "logical_and", bool_, call("ge", bool_, index_value(place), zero), call("lt", bool_, index_value(place), last)
    )  # fmt: skip


def _every(conditions: Sequence[Value]) -> Value:
    return reduce(lambda first, second: call("logical_and", bool_, first, second), conditions)


class Convolution:
    """A convolution's sizes, and the elements of its operands."""

    def __init__(self, template: TemplateBuffer, buffers: dict[str, Buffer]):
        self.template = template
        self.buffers = buffers
        shape = template.parameters["shape"]
        if template.kind.startswith("volumes"):
            self.images, self.channels, self.outputs, self.groups = shape[:4]
            parts = [shape[first : first + 5] for first in (4, 9, 14)]
        else:
            self.images, self.channels, height, width, self.outputs, *kernel, self.groups = shape
            parts = [(1, 1, 1, 0, 1), (height, *kernel[0::2]), (width, *kernel[1::2])]
        self.axes = [_axis(*part) for part in parts]
        self.read = as_size(self.channels // self.groups)
        self.given = as_size(self.outputs // self.groups)

    @property
    def taps(self) -> tuple[Size, ...]:
        """The number of taps along each axis."""
        return tuple(axis.taps for axis in self.axes)

    @property
    def out(self) -> tuple[Size, ...]:
        """The result's sizes along each axis."""
        return tuple(axis.out for axis in self.axes)

    @property
    def size(self) -> tuple[Size, ...]:
        """The input's sizes along each axis."""
        return tuple(axis.size for axis in self.axes)

    def element(self, operand: Operand, place: Place, sizes: tuple[Size, ...]) -> Load:
        """Return an operand's element at (first, channel, z, y, x). An operand of two dimensions has no z."""
        kind = self.buffers[operand.buffer].layout.dtype
        strides = row_major(sizes) if len(operand.strides) != len(sizes) else operand.strides
        if len(operand.strides) == 4:
            strides = (*operand.strides[:2], 0, *operand.strides[2:])
        index = as_expr(operand.offset) + sum((at * step for at, step in zip(place, strides, strict=True)), as_expr(0))
        return Load(kind, operand.buffer, index)

    def image(self, image: Expr, channel: Expr, places: Place, name: str) -> Load:
        """Return an element of the input, or of a tensor of its size."""
        operand = self.template.operands[name]
        if self.template.kind == "word_convolution":
            return self._channels_last(operand, (image, channel, *places), (self.channels, *self.size))
        return self.element(operand, (image, channel, *places), (self.images, self.channels, *self.size))

    def result(self, image: Expr, output: Expr, places: Place, name: str) -> Load:
        """Return an element of a tensor of the result's size."""
        sizes = (self.images, self.outputs, *self.out)
        return self.element(self.template.operands[name], (image, output, *places), sizes)

    def weight(self, output: Expr, channel: Expr, taps: Place) -> Load:
        """Return an element of the weight."""
        operand = self.template.operands["weight"]
        if self.template.kind == "word_convolution":
            return self._channels_last(operand, (output, channel, *taps), (self.read, *self.taps))
        return self.element(operand, (output, channel, *taps), (self.outputs, self.read, *self.taps))

    def _channels_last(self, operand: Operand, place: Place, sizes: tuple[Size, ...]) -> Load:
        """Return an element of a dense operand [first, y, x, channel]."""
        first, channel, _, y, x = place
        steps = row_major((1, sizes[2], sizes[3], sizes[0]))
        index = sum((at * step for at, step in zip((first, y, x, channel), steps, strict=True)), as_expr(operand.offset))
        return Load(self.buffers[operand.buffer].layout.dtype, operand.buffer, index)

    def padded(self, image: Expr, channel: Expr, out: Place, taps: Place) -> Value:
        """Return the input's element that a tap reads for a result; 0 outside of the image."""
        places = [axis.input_place(at, tap) for axis, at, tap in zip(self.axes, out, taps, strict=True)]
        inside = _every([_inside(place, axis.size) for axis, place in zip(self.axes, places, strict=True)])
        load = self.image(image, channel, places, "input")
        return masked(load.dtype, inside, load, Constant(load.dtype, 0))

    def spread_grad(self, image: Expr, output: Expr, places: Place, taps: Place) -> Value:
        """Return the element of the result's gradient that a tap read an input for; 0 if there is none."""
        outs, conditions = [], []
        for axis, place, tap in zip(self.axes, places, taps, strict=True):
            moved = place + axis.pad - tap * axis.spread
            if axis.step != 1:
                zero = Constant(index_value(moved).dtype, 0)
                conditions.append(call("eq", bool_, index_value(moved % axis.step), zero))
            outs.append(moved // axis.step)
            conditions += [_inside(moved // axis.step, axis.out)]
        name = "input" if "input" in self.template.operands else "grad"
        load = self.result(image, output, outs, name)
        return masked(load.dtype, _every(conditions), load, Constant(load.dtype, 0))

    # Products

    def product(self) -> Product:
        """Return the convolution as a product."""
        if self.template.kind in OF_WEIGHTS:
            return self._weight_product()
        return self._forward() if self.template.kind in FORWARD else self._backward()

    @property
    def is_single(self) -> bool:
        """Whether each channel has one filter, so that there are no matrices to multiply."""
        return self.template.kind not in OF_WEIGHTS and (self.read, self.given) == (1, 1)

    def _forward(self) -> Product:
        pixels, order = math.prod(self.out), (*self.taps, self.read)
        last = self.template.kind in CHANNELS_LAST

        def image(group: Expr, image: Expr, out: Place, step: Expr) -> Value:
            *taps, channel = unflatten_index(step, order)
            return self.padded(image, group * self.read + channel, out, taps)

        def weight(group: Expr, output: Expr, step: Expr) -> Value:
            *taps, channel = unflatten_index(step, order)
            return self.weight(group * self.given + output, channel, taps)

        depth = as_size(math.prod(order))
        if last:
            return Product(
                self.groups, as_size(self.images * pixels), self.given, depth,
                lambda group, x, k: image(group, *self._pixel(x, self.out), k), lambda group, k, r: weight(group, r, k),
                lambda group, x, r: (x, group * self.given + r),
            )  # fmt: skip
        return Product(
            as_size(self.images * self.groups), self.given, as_size(pixels), depth,
            lambda batch, x, k: weight(batch % self.groups, x, k),
            lambda batch, k, r: image(batch % self.groups, batch // self.groups, unflatten_index(r, self.out), k),
            lambda batch, x, r: (batch * self.given + x, r),
        )  # fmt: skip

    def _backward(self) -> Product:
        pixels, order = math.prod(self.size), (*self.taps, self.given)
        last = self.template.kind in CHANNELS_LAST

        def grad(group: Expr, image: Expr, places: Place, step: Expr) -> Value:
            *taps, output = unflatten_index(step, order)
            return self.spread_grad(image, group * self.given + output, places, taps)

        def weight(group: Expr, channel: Expr, step: Expr) -> Value:
            *taps, output = unflatten_index(step, order)
            return self.weight(group * self.given + output, channel, taps)

        depth = as_size(math.prod(order))
        if last:
            return Product(
                self.groups, as_size(self.images * pixels), self.read, depth,
                lambda group, x, k: grad(group, *self._pixel(x, self.size), k), lambda group, k, r: weight(group, r, k),
                lambda group, x, r: (x, group * self.read + r),
            )  # fmt: skip
        return Product(
            as_size(self.images * self.groups), self.read, as_size(pixels), depth,
            lambda batch, x, k: weight(batch % self.groups, x, k),
            lambda batch, k, r: grad(batch % self.groups, batch // self.groups, unflatten_index(r, self.size), k),
            lambda batch, x, r: (batch * self.read + x, r),
        )  # fmt: skip

    def _weight_product(self) -> Product:
        last = self.template.parameters["last"]
        order = (*self.taps, self.read) if last else (self.read, *self.taps)

        def right(group: Expr, step: Expr, column: Expr) -> Value:
            image, out = self._pixel(step, self.out)
            places = unflatten_index(column, order)
            channel, taps = (places[-1], places[:-1]) if last else (places[0], places[1:])
            return self.padded(image, group * self.read + channel, out, taps)

        def left(group: Expr, row: Expr, step: Expr) -> Value:
            image, out = self._pixel(step, self.out)
            return self.result(image, group * self.given + row, out, "grad")

        depth = as_size(self.images * math.prod(self.out))
        return Product(
            self.groups, self.given, as_size(math.prod(order)), depth, left, right,
            lambda group, x, r: (group * self.given + x, r),
        )  # fmt: skip

    def _pixel(self, row: Expr, sizes: tuple[Size, ...]) -> tuple[Expr, list[Expr]]:
        image, *places = unflatten_index(row, (self.images, *sizes))
        return image, places

    # Sums

    def term(self) -> tuple[Size, Callable[[Expr, Expr, Expr], Value]]:
        """Return the number of taps, and what a tap adds to the result at a row and column of the domain."""
        forward, last = self.template.kind in FORWARD, self.template.kind in CHANNELS_LAST
        sizes = self.out if forward else self.size

        def term(x: Expr, r: Expr, step: Expr) -> Value:
            if last:
                (image, places), channel = self._pixel(x, sizes), r
            else:
                image, channel = unflatten_index(x, (self.images, self.channels))
                places = unflatten_index(r, sizes)
            taps = unflatten_index(step, self.taps)
            found = (self.padded if forward else self.spread_grad)(image, channel, places, taps)
            factors = (cast(value, float32) for value in (found, self.weight(channel, as_expr(0), taps)))
            return call("mul", float32, *factors)

        return as_size(math.prod(self.taps)), term


def _axis(size: Size, taps: Size, step: Size, pad: Size, spread: Size) -> Axis:
    out = as_size((size + 2 * pad - spread * (taps - 1) - 1) // step + 1)
    return Axis(size, out, taps, step, pad, spread)


def convolution_of(template: TemplateBuffer, buffers: dict[str, Buffer]) -> Convolution | None:
    """Return a template's convolution; None for other templates."""
    return Convolution(template, buffers) if template.kind in (*FORWARD, *BACKWARD, *OF_WEIGHTS) else None


