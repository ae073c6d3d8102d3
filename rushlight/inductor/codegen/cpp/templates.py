"""Templates as C++: calls of the hand-written kernels in `include/rushlight`, with fused epilogues as functors."""

from __future__ import annotations

import math
from dataclasses import replace

from rushlight.core.dtype import float32, int8, int16
from rushlight.inductor.codegen.cpp.attentions import AttentionWriter
from rushlight.inductor.codegen.cpp.convolutions import ConvolutionWriter
from rushlight.inductor.codegen.cpp.expressions import StatementWriter
from rushlight.inductor.codegen.cpp.kernels import Kernel, KernelWriter
from rushlight.inductor.codegen.cpp.library_calls import LibraryCallWriter
from rushlight.inductor.codegen.cpp.packing import OWN_PANELS, WIDEST_PANEL, PackedOperand, texts
from rushlight.inductor.codegen.cpp.recurrents import RecurrentWriter
from rushlight.inductor.codegen.cpp.types import size_text
from rushlight.inductor.costs import packs_columns, turned
from rushlight.inductor.ir import Buffer, Operand, TemplateBuffer
from rushlight.inductor.scheduler import Group, body_in_domain, row_variables
from rushlight.inductor.sizes import Size, as_size, rounded_up

MAX_COLUMN_EXTRA = 76  # upper bound of bytes per column for the sums that follow a panel of bytes and for rounding up its depth
# a product's rows with at most this many elements stay in L2 caches; measured on one kind of processor
MAX_CACHED_ELEMENTS = 1 << 20


class TemplateKernel(AttentionWriter, ConvolutionWriter, RecurrentWriter, LibraryCallWriter, KernelWriter):
    """Writes a template and its epilogues. `packed` lists the packed operands whose memory it needs."""

    def __init__(self, group: Group, buffers: dict[str, Buffer]):
        super().__init__(group, buffers)
        self.template: TemplateBuffer = group.template
        self.x, self.r = row_variables(group.domain)
        self.packed: list[PackedOperand] = []

    def write(self) -> Kernel:
        """Return the kernel."""
        self.kernel.body = getattr(self, f"_{self.template.kind}")()
        return self.kernel

    def pointer_to(self, operand: Operand) -> str:
        """Return the address of an operand's first element."""
        pointer = self.pointer(operand.buffer)
        return f"{pointer} + {size_text(operand.offset)}" if operand.offset != 0 else pointer

    def extra(self, kind: str, parameter: str, argument: str) -> str:
        self.kernel.parameters.append((kind, parameter))
        self.kernel.arguments.append(argument)
        return parameter

    def _gemm(self) -> list[str]:
        template = self.template
        a, b = template.operands["a"], template.operands["b"]
        depth, constant = template.parameters["depth"], template.parameters["packed_once"]
        by_columns = a.strides[0] == 1 and a.strides[1] != 1
        in_place = _stays_in_cache(template.rows, depth) and not (by_columns and packs_columns(template.rows, template.columns))
        if not constant and not template.parameters.get("rows_at_once") and in_place:
            return self._gemm_by_panels()
        address = self.pointer_to(a)
        strides = "_".join(map(str, b.strides))
        arguments = texts(*b.strides, depth, template.columns)
        stored = self.element_type(b.buffer)
        name = f"packed_{b.buffer}_{b.offset}_{strides}"
        by_panels = constant and not by_columns
        packed = PackedOperand(name, b, depth, template.columns, constant, "rl::pack_b", arguments, stored, by_panels)
        lines = self.pack(packed)
        panels = "panels" if by_columns else f"rl::b_panels({self._own_panels(packed) if constant else 'panels'})"
        self.kernel.work = as_size(template.rows * template.columns * depth * 2)
        rows_at_once = 0 if by_columns else template.parameters.get("rows_at_once", 0)
        function, rows = "rl::gemm_columns" if by_columns else "rl::gemm", size_text(template.rows)
        stride, scratch = size_text(a.strides[1 if by_columns else 0]), ""
        if by_columns:
            self.scratch = (f"scratch_{template.name}", f"rl::gemm_columns_scratch_bytes({size_text(depth)})")
            scratch = f" {self.extra('char*', 'scratch', self.scratch[0])},"
        lines += [
            f"{function}({rows}, {address}, {stride}, {panels}, {texts(template.columns, depth)},{scratch}",
            *self.results(template.columns, f", {texts(rows_at_once)});" if rows_at_once else ");"),
        ]
        return lines

    def _word_gemm(self) -> list[str]:
        """Write a product of bytes (with stores as its epilogue) or of bfloat16."""
        template = self.template
        a, b = template.operands["a"], template.operands["b"]
        depth, constant = template.parameters["depth"], template.parameters["packed_once"]
        stored = self.element_type(b.buffer)
        address, strides = self.pointer_to(a), "_".join(map(str, b.strides))
        arguments = texts(*b.strides, depth, template.columns)
        name = f"words_{b.buffer}_{b.offset}_{strides}"
        words = as_size(depth + 8 // stored.itemsize)  # rounded up, plus one word for the sums' initial values
        lines = self.pack(PackedOperand(name, b, words, template.columns, constant, "rl::pack_words", arguments, stored))
        self.kernel.work = as_size(template.rows * template.columns * depth)
        call = (
            f"rl::word_gemm({size_text(template.rows)}, {address}, {size_text(a.strides[0])}, panels, "
            f"{texts(template.columns, depth)},"
        )
        if stored is not int8:
            return [*lines, call, *self.results(template.columns, ");")]
        captured, stores = self.epilogue()
        head = f"    [{', '.join(['&', *captured])}](auto lane, long x, long r, auto value) {{"
        return [*lines, call, head, *[f"  {line}" for line in stores], "});"]

    def _block_gemm(self) -> list[str]:
        """Return a product with block-quantized weights; the other factor's rows are quantized to bytes first."""
        template = self.template
        a, b, depth = template.operands["a"], template.operands["b"], template.parameters["depth"]
        arguments, held = texts(*a.strides, depth, template.rows), as_size(depth + depth // 4)  # includes scales and sums
        rows = PackedOperand(f"bytes_{template.name}", a, held, template.rows, False, "rl::pack_byte_rows", arguments, int8)
        self.kernel.work = as_size(template.rows * template.columns * depth)
        return [
            *self.pack(rows),
            f"rl::block_gemm<rl::{template.parameters['layout']}>({size_text(template.rows)}, panels, {self.pointer_to(b)}, "
            f"{texts(b.strides[0], template.columns, depth)},",
            *self.results(template.columns, ");"),
        ]

    def _byte_layer(self) -> list[str]:
        """Write exact sums of byte products."""
        template, shape = self.template, self.template.parameters["shape"]
        source, weight, zero = (template.operands.get(name) for name in ("input", "weight", "zero_point"))
        channels, outputs, groups, depth = shape[1], shape[4], shape[-1], template.parameters["depth"]
        constant, name = template.parameters["packed_once"], f"bytes_{weight.buffer}_{weight.offset}"
        if (channels, outputs) == (groups, groups) and groups != 1:
            taps = PackedOperand(name, weight, depth, outputs, constant, "rl::pack_byte_taps", texts(outputs, depth), int16)
            packed, function = taps, "rl::byte_depthwise"
        else:
            each = as_size(outputs // groups)
            arguments, held = texts(groups, each, depth), as_size(depth + MAX_COLUMN_EXTRA)
            columns = as_size(groups * rounded_up(each, WIDEST_PANEL))
            packed = PackedOperand(name, weight, held, columns, constant, "rl::pack_byte_layer", arguments, int8)
            function = "rl::byte_convolution"
        self.kernel.work = as_size(template.rows * template.columns * depth)
        inputs = f"rl::input_of({self.pointer_to(source)}, {'0' if zero is None else f'*({self.pointer_to(zero)})'})"
        lines = [*self.pack(packed), f"const rl::conv_shape shape{{{texts(*shape)}}};"]
        scratch = ""
        if function == "rl::byte_convolution":
            self.scratch = (f"scratch_{template.name}", f"rl::byte_scratch_bytes(rl::conv_shape{{{texts(*shape)}}})")
            scratch = f" {self.extra('char*', 'scratch', self.scratch[0])},"
        multiple = outputs // groups if packed.stored is int8 else outputs
        return [*lines, f"{function}(shape, {inputs}, panels,{scratch}", *self.results(multiple, ");", "int32_t")]

    def _block_rows(self) -> list[str]:
        """Dequantize block-quantized rows."""
        template, b = self.template, self.template.operands["b"]
        self.kernel.work = as_size(template.rows * template.columns * 2)
        return [
            f"rl::block_rows<rl::{template.parameters['layout']}>({size_text(template.rows)}, {self.pointer_to(b)}, "
            f"{texts(b.strides[0], template.columns)},",
            *self.results(template.columns, ");"),
        ]

    def pack(self, operand: PackedOperand) -> list[str]:
        """Add a packed operand as the parameter `panels`; returns the statement that packs it if it is not constant."""
        return self.take_packed(operand, self.template.name)[1]

    def take_packed(self, operand: PackedOperand, reader: str) -> tuple[str, list[str]]:
        """Return the parameter of a packed operand, and the statements that pack it if it is not constant."""
        parameter = f"panels{len(self.packed) or ''}"
        if operand.constant:
            self.packed.append(operand)
            return self.extra(f"const {operand.element}*", parameter, operand.name), []
        self.packed.append(replace(operand, name=f"panels_{reader}"))
        source = self.pointer_to(operand.source)
        return parameter, [operand.call(source, self.extra(f"{operand.element}*", parameter, self.packed[-1].name))]

    def _own_panels(self, operand: PackedOperand) -> str:
        """Return a constant's panels and its unpacked source: in runs without panels, threads pack from the source."""
        source = self.extra(f"const {operand.element}*", "unpacked", operand.unpacked)
        own = self.extra("void*", "own", OWN_PANELS)
        return f"panels, {source}, {texts(*operand.source.strides)}, {own}"

    def _gemm_by_panels(self) -> list[str]:
        """Return a product whose threads pack each panel just before using it."""
        template, depth = self.template, self.template.parameters["depth"]
        a, b = template.operands["a"], template.operands["b"]
        self.kernel.work = as_size(template.rows * template.columns * depth * 2)
        if b.strides[0] == 1 and self.element_type(b.buffer) is float32 and turned(template.rows, template.columns, depth):
            return self._gemm_turned()
        return [
            f"rl::gemm_by_panels({size_text(template.rows)}, {self.pointer_to(a)}, {texts(*a.strides)}, {self.pointer_to(b)}, "
            f"{texts(*b.strides)}, {texts(template.columns, depth)}, {self._panel_of_each_thread(depth)},",
            *self.results(template.columns, ");"),
        ]

    def _gemm_turned(self) -> list[str]:
        """Return a product computed as its transpose: the rows are packed instead of the columns, because there are more
        columns."""
        template, depth = self.template, self.template.parameters["depth"]
        a, b = template.operands["a"], template.operands["b"]
        arguments = texts(*reversed(a.strides), depth, template.rows)
        return [
            *self.pack(PackedOperand(f"rows_{template.name}", a, depth, template.rows, False, "rl::pack_b", arguments)),
            f"rl::gemm_turned({size_text(template.rows)}, panels, {self.pointer_to(b)}, "
            f"{texts(b.strides[1], template.columns, depth)},",
            *self.results(template.columns, ");"),
        ]

    def _bgemm(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        a, b = template.operands["a"], template.operands["b"]
        depth, rows = parameters["depth"], parameters["rows_each"]
        left, right = self.pointer_to(a), self.pointer_to(b)
        scratch = self._panel_of_each_thread(depth)
        self.kernel.work = as_size(template.rows * template.columns * depth * 2)
        return [
            f"rl::bgemm({texts(rows, parameters['batch'])}, rl::matrices{{{left}, {texts(*a.strides)}}},",
            f"    rl::matrices{{{right}, {texts(*b.strides)}}}, {texts(template.columns, depth)}, {scratch},",
            *self.results(template.columns, ");"),
        ]

    def _panel_of_each_thread(self, depth: Size) -> str:
        self.scratch = (f"scratch_{self.template.name}", f"rl::bgemm_scratch_bytes({size_text(depth)})")
        return self.extra("char*", "scratch", self.scratch[0])

    def results(self, columns: Size, end: str, element: str = "float") -> list[str]:
        """Return the last lines of a call: the epilogue for results (`columns` is their width if known), and `end`.

        The functor captures by value, so that captured values stay in registers, except that random streams have state.
        """
        captured, lines = self.epilogue()
        multiple, held = math.gcd(columns, WIDEST_PANEL) if isinstance(columns, int) else 1, "&" if self.kernel.streams else "="
        chosen = f"{multiple}" if element == "float" else f"{multiple}, {element}"
        return [
            f"    rl::epilogue_of<{chosen}>([{', '.join([held, *captured])}](auto lane, long x, long r, auto value) {{",
            *[f"  {line}" for line in lines],
            f"}}){end}",
        ]

    def epilogue(self) -> tuple[list[str], list[str]]:
        """Return the captures of elements that all results share, and the statements for each tile of results: the fused loops'
        bodies, and stores of needed values."""
        writer = StatementWriter(self.r, self.pointer, self.element_type, self.stream)
        writer.captured = {}
        writer.local[self.template.name] = "value"
        if self.template.name in self.stored:
            writer.lines.append(self.store(self.template.name, self.group.domain, "value"))
        for member in self.group.members[1:]:
            result = writer.write(body_in_domain(member, self.group.domain))
            if member.name in self.stored:
                writer.lines.append(self.store(member.name, self.group.domain, result))
            writer.local[member.name] = result
        return [f"{name} = {text}" for text, name in writer.captured.items()], writer.lines


def _stays_in_cache(rows: Size, depth: Size) -> bool:
    """Return whether a product's rows stay in the L2 caches while they pass over panels."""
    return isinstance(rows, int) and isinstance(depth, int) and rows * depth <= MAX_CACHED_ELEMENTS
