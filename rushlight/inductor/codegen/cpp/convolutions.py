"""Convolutions and their gradients as C++: calls of conv.h, image.h, winograd.h, depthwise.h, grouped.h, volume.h and the
gradients' headers."""

from __future__ import annotations

import math

from rushlight.core.dtype import bfloat16
from rushlight.inductor.codegen.cpp.packing import THREADS, WIDEST_PANEL, PackedOperand, texts
from rushlight.inductor.ir import Operand, TemplateBuffer
from rushlight.inductor.sizes import Size, as_size

WINOGRAD_PLACES = 36
MAX_PAIR_EXTRA = 36  # upper bound of bfloat16 elements per column for initial sums and for rounding up a panel's depth


class ConvolutionWriter:
    """The part of `TemplateKernel` for convolutions. The method `_KIND` writes the call for templates of that kind."""

    template: TemplateBuffer

    def _convolution(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        source, weight = self.pointer_to(template.operands["input"]), self.pointer_to(template.operands["weight"])
        shape = texts(*parameters["shape"])
        self.scratch = (f"scratch_{template.name}", f"rl::conv2d_scratch_bytes(rl::conv_shape{{{shape}}})")
        scratch = self.extra("char*", "scratch", self.scratch[0])
        self.kernel.work = as_size(template.rows * template.columns * parameters["depth"] * 2)
        depthwise = parameters["shape"][1] == parameters["shape"][-1]
        return [
            f"const rl::conv_shape shape{{{shape}}};",
            f"rl::conv2d({source}, {weight}, shape, {scratch},",
            *self.results(1 if depthwise else template.columns, ");"),
        ]

    def _direct_convolution(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        source, weight = template.operands["input"], template.operands["weight"]
        _, channels, _, _, outputs, height, width, *_ = parameters["shape"]
        order = "taps_outside" if source.strides[1] == 1 or channels == 1 else "channels_outside"
        address = self.pointer_to(source)
        arguments = _filter_sizes(weight, outputs, channels, as_size(height * width), order)
        name = f"filter_{weight.buffer}_{weight.offset}_{order}"
        lines = self.pack(
            PackedOperand(
                name, weight, parameters["depth"], outputs, parameters["packed_once"], "rl::pack_filter", arguments
            )
        )  # fmt: skip
        call = f"rl::conv2d_direct({address}, {image_strides(source)}, panels"
        return [*lines, *self._finish_call(call, "rl::filter_scratch_bytes", outputs)]

    def _word_convolution(self) -> list[str]:
        """Write a convolution of bfloat16 whose sums are float32."""
        template, shape = self.template, texts(*self.template.parameters["shape"])
        source, weight, depth = template.operands["input"], template.operands["weight"], template.parameters["depth"]
        name, outputs = f"pairs_{weight.buffer}_{weight.offset}", template.columns
        constant, held = template.parameters["packed_once"], as_size(depth + MAX_PAIR_EXTRA)
        lines = self.pack(
            PackedOperand(name, weight, held, outputs, constant, "rl::pack_word_layer", texts(depth, outputs), bfloat16)
        )
        self.scratch = (f"scratch_{template.name}", f"rl::word_scratch_bytes(rl::conv_shape{{{shape}}})")
        scratch = self.extra("char*", "scratch", self.scratch[0])
        self.kernel.work = as_size(template.rows * outputs * depth)
        return [
            *lines,
            f"const rl::conv_shape shape{{{shape}}};",
            f"rl::word_convolution(shape, {self.pointer_to(source)}, panels, {scratch},",
            *self.results(outputs, ");"),
        ]

    def _winograd(self) -> list[str]:
        template = self.template
        source, weight = template.operands["input"], template.operands["weight"]
        channels, outputs = template.parameters["shape"][1], template.parameters["shape"][4]
        address, plain, depth = self.pointer_to(source), self.pointer_to(weight), as_size(WINOGRAD_PLACES * channels)
        name, constant = f"winograd_{weight.buffer}_{weight.offset}", template.parameters["packed_once"]
        arguments = f"{image_strides(weight)}, {texts(outputs, channels)}"
        lines = self.pack(PackedOperand(name, weight, depth, outputs, constant, "rl::pack_winograd", arguments))
        call = f"rl::conv2d_winograd({address}, {image_strides(source)}, {plain}, {image_strides(weight)}, panels"
        return [*lines, *self._finish_call(call, "rl::winograd_scratch_bytes", outputs)]

    def _volumes(self) -> list[str]:
        source, weight = (self.pointer_to(self.template.operands[name]) for name in ("input", "weight"))
        return self._finish_volume_call(f"rl::convolve_volumes({source}, {weight}", "rl::volume_scratch_bytes", 1)

    def _volumes_input(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        source, weight = template.operands["input"], template.operands["weight"]
        shape = volume_shape(parameters["shape"])
        name, channels = f"volumes_{weight.buffer}_{weight.offset}", parameters["shape"][1]
        operand = PackedOperand(
            name, weight, parameters["depth"], channels, parameters["packed_once"], "rl::pack_volume_gradient", shape
        )
        lines = self.pack(operand)
        # stride[0] * stride[1] * stride[2]: each input element is read by one tap in this many
        steps = as_size(math.prod(parameters["shape"][6::5]))
        call = f"rl::volume_input_gradient({self.pointer_to(source)}, panels"
        return [*lines, *self._finish_volume_call(call, "rl::volume_input_scratch_bytes", steps)]

    def _finish_volume_call(self, call: str, scratch_bytes: str, steps: Size) -> list[str]:
        """Complete a call with shape, scratch memory and epilogue."""
        template, shape = self.template, volume_shape(self.template.parameters["shape"])
        self.scratch = (f"scratch_{template.name}", f"{scratch_bytes}({shape}, {THREADS})")
        scratch = self.extra("char*", "scratch", self.scratch[0])
        self.kernel.work = as_size(template.rows * template.columns * template.parameters["depth"] * 2 // steps)
        return [f"const rl::volume_shape shape = {shape};", f"{call}, shape, {scratch},", *self.results(1, ");")]

    def _convolution_input(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        grad, weight = template.operands["grad"], template.operands["weight"]
        shape = texts(*parameters["shape"])
        address, columns = self.pointer_to(grad), template.columns
        name = f"gradient_filter_{weight.buffer}_{weight.offset}"
        arguments, depth = f"{image_strides(weight)}, rl::conv_shape{{{shape}}}", parameters["depth"]
        lines = self.pack(
            PackedOperand(name, weight, depth, columns, parameters["packed_once"], "rl::pack_gradient_filter", arguments)
        )  # fmt: skip
        call = f"rl::conv2d_input_gradient({address}, {image_strides(grad)}, panels"
        return [*lines, *self._finish_call(call, "rl::input_gradient_scratch_bytes", columns)]

    def _convolution_weight(self) -> list[str]:
        template = self.template
        source, grad = template.operands["input"], template.operands["grad"]
        addresses = f"{self.pointer_to(source)}, {image_strides(source)}, {self.pointer_to(grad)}, {image_strides(grad)}"
        last = "true" if template.parameters["last"] else "false"
        way = "winograd" if template.parameters["winograd"] else "gradient"
        call = f"rl::conv2d_weight_{way}({addresses}, {last}"
        return self._finish_call(call, f"rl::weight_{way}_scratch_bytes", template.columns)

    def _depthwise(self) -> list[str]:
        return self._call_channelwise("input", "rl::conv2d_channelwise", "rl::depthwise_scratch_bytes")

    def _depthwise_input(self) -> list[str]:
        return self._call_channelwise("grad", "rl::channelwise_input_gradient", "rl::depthwise_input_scratch_bytes")

    def _grouped(self) -> list[str]:
        return self._call_by_groups("input", "rl::conv2d_grouped", "rl::grouped_scratch_bytes", True)

    def _grouped_input(self) -> list[str]:
        return self._call_by_groups("grad", "rl::grouped_input_gradient", "rl::grouped_input_scratch_bytes", False)

    def _call_by_groups(self, source_name: str, function: str, scratch_bytes: str, forward: bool) -> list[str]:
        template, parameters = self.template, self.template.parameters
        source, weight = template.operands[source_name], template.operands["weight"]
        shape, read, given = parameters["shape"], *parameters["each"]
        taps = as_size(shape[5] * shape[6])
        arguments = f"{texts(shape[-1], read, given, taps)}, {'true' if forward else 'false'}"
        name = f"groups_{weight.buffer}_{weight.offset}_{'forward' if forward else 'backward'}"
        lanes, constant = 3 * max(read, given) * shape[-1], parameters["packed_once"]  # an upper bound, including unused lanes
        operand = PackedOperand(name, weight, parameters["depth"], lanes, constant, "rl::pack_groups", arguments)
        # Blocks of channels that fill whole vectors start at multiples of a vector.
        known = template.columns if read <= given and WIDEST_PANEL % given == 0 else 1
        call = f"{function}({self.pointer_to(source)}, {image_strides(source)}, panels"
        return [*self.pack(operand), *self._finish_call(call, scratch_bytes, known)]

    def _call_channelwise(self, source_name: str, function: str, scratch_bytes: str) -> list[str]:
        template, parameters = self.template, self.template.parameters
        source, weight = template.operands[source_name], template.operands["weight"]
        address, channels, taps = self.pointer_to(source), template.columns, parameters["depth"]
        name = f"channelwise_{weight.buffer}_{weight.offset}"
        lines = self.pack(
            PackedOperand(name, weight, taps, channels, parameters["packed_once"], "rl::pack_depthwise", texts(channels, taps))
        )  # fmt: skip
        return [*lines, *self._finish_call(f"{function}({address}, {image_strides(source)}, panels", scratch_bytes, channels)]

    def _depthwise_weight(self) -> list[str]:
        source, grad = self.template.operands["input"], self.template.operands["grad"]
        addresses = f"{self.pointer_to(source)}, {image_strides(source)}, {self.pointer_to(grad)}, {image_strides(grad)}"
        call = f"rl::channelwise_weight_gradient({addresses}"
        return self._finish_call(call, "rl::depthwise_weight_scratch_bytes", self.template.columns)

    def _finish_call(self, call: str, scratch_bytes: str, outputs: Size) -> list[str]:
        """Complete a call with shape, scratch memory and epilogue; rows of results have `outputs` columns."""
        template, sizes = self.template, self.template.parameters["shape"]
        shape = texts(*sizes)
        self.scratch = (f"scratch_{template.name}", f"{scratch_bytes}(rl::conv_shape{{{shape}}}, {THREADS})")
        scratch = self.extra("char*", "scratch", self.scratch[0])
        # With a stride, each input pixel is read by only one tap in stride[0] * stride[1].
        steps = sizes[7] * sizes[8] if template.kind in ("convolution_input", "depthwise_input", "grouped_input") else 1
        self.kernel.work = as_size(template.rows * template.columns * template.parameters["depth"] * 2 // steps)
        return [
            f"const rl::conv_shape shape{{{shape}}};",
            f"{call}, shape, {scratch},",
            *self.results(outputs, ");"),
        ]


def _filter_sizes(weight: Operand, outputs: Size, channels: Size, taps: Size, order: str) -> str:
    """Return the arguments of rl::pack_filter. Channels-last filters exchange taps and channels."""
    if weight.strides[1] == 1:
        channels, taps = taps, channels
        order = "channels_outside" if order == "taps_outside" else "taps_outside"
    return f"{texts(outputs, channels, taps)}, rl::filter_order::{order}"


def volume_shape(shape: tuple) -> str:
    """Return an rl::volume_shape: four counts, and five numbers for each axis."""
    axes = ", ".join(f"{{{texts(*shape[first : first + 5])}}}" for first in (4, 9, 14))
    return f"rl::volume_shape{{{texts(*shape[:4])}, {axes}}}"


def image_strides(operand: Operand) -> str:
    """Return an image's strides as a C++ value."""
    return f"rl::image_strides{{{texts(*operand.strides)}}}"
