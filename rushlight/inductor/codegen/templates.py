"""Templates as C++: calls of the hand-written kernels in `include/rushlight`, with fused epilogues as their functors."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.inductor.codegen.expressions import StatementWriter
from rushlight.inductor.codegen.kernels import Kernel, KernelWriter
from rushlight.inductor.codegen.types import c_type
from rushlight.inductor.indexing import to_cpp
from rushlight.inductor.ir import Buffer, Operand, TemplateBuffer
from rushlight.inductor.scheduler import Group, body_in_domain, element_index, row_variables


@dataclass(frozen=True, slots=True)
class PackedOperand:
    """A matrix rearranged into the panels that the product reads: once for constants, at each run otherwise."""

    name: str
    source: Operand
    depth: int
    columns: int
    constant: bool


class TemplateKernel(KernelWriter):
    """Writes a template and its epilogues. `packed` and `scratch` (bytes per thread) say what memory it needs besides."""

    def __init__(self, group: Group, buffers: dict[str, Buffer]):
        super().__init__(group, buffers)
        self.template: TemplateBuffer = group.template
        self.x, self.r = row_variables(group.domain)
        self.packed: PackedOperand | None = None
        self.scratch: tuple[str, str] | None = None

    def write(self) -> Kernel:
        """The kernel."""
        self.kernel.body = getattr(self, f"_{self.template.kind}")()
        return self.kernel

    def _pointer_to(self, operand: Operand) -> str:
        """The address of an operand's first element."""
        pointer = self.pointer(operand.buffer)
        return f"{pointer} + {operand.offset}L" if operand.offset else pointer

    def _extra(self, kind: str, parameter: str, argument: str) -> str:
        self.kernel.parameters.append((kind, parameter))
        self.kernel.arguments.append(argument)
        return parameter

    def _gemm(self) -> list[str]:
        template = self.template
        a, b = template.operands["a"], template.operands["b"]
        depth = template.parameters["depth"]
        address = self._pointer_to(a)
        constant = template.parameters["packed_once"]
        strides = "_".join(map(str, b.strides))
        name = f"packed_{b.buffer}_{b.offset}_{strides}" if constant else f"panels_{template.name}"
        self.packed = PackedOperand(name, b, depth, template.columns, constant)
        lines = []
        if not constant:
            source = self._pointer_to(b)
            panels = self._extra("float*", "panels", name)
            lines.append(
                f"rl::pack_b({source}, {b.strides[0]}L, {b.strides[1]}L, {depth}L, {template.columns}L, {panels});"
            )
        else:
            panels = self._extra("const float*", "panels", name)
        self.kernel.work = 2 * template.rows * template.columns * depth
        lines += [
            f"rl::gemm<{template.rows}L>({address}, {a.strides[0]}L, {panels}, {template.columns}L, {depth}L,",
            "    [&](auto lane, long x, long r, auto value) {",
            *[f"  {line}" for line in self._epilogue()],
            "});",
        ]
        return lines

    def _bgemm(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        a, b = template.operands["a"], template.operands["b"]
        depth, rows = parameters["depth"], parameters["rows_each"]
        left, right = self._pointer_to(a), self._pointer_to(b)
        self.scratch = (f"scratch_{template.name}", f"rl::bgemm_scratch_bytes({depth}L)")
        scratch = self._extra("char*", "scratch", self.scratch[0])
        self.kernel.work = 2 * template.rows * template.columns * depth
        return [
            f"rl::bgemm<{rows}L>({parameters['batch']}L,",
            f"    [&](long batch) {{ return {left} + batch * {a.strides[0]}L; }}, {a.strides[1]}L, {a.strides[2]}L,",
            f"    [&](long batch) {{ return {right} + batch * {b.strides[0]}L; }}, {b.strides[1]}L, {b.strides[2]}L,",
            f"    {template.columns}L, {depth}L, {scratch}, [&](auto lane, long batch, long row, long r, auto value) {{",
            f"  const long x = batch * {rows}L + row;",
            *[f"  {line}" for line in self._epilogue()],
            "});",
        ]

    def _convolution(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        source, weight = self._pointer_to(template.operands["input"]), self._pointer_to(template.operands["weight"])
        shape = ", ".join(map(str, parameters["shape"]))
        outputs = parameters["shape"][4]
        self.scratch = (f"scratch_{template.name}", f"rl::conv2d_scratch_bytes(rl::conv_shape{{{shape}}})")
        scratch = self._extra("char*", "scratch", self.scratch[0])
        self.kernel.work = 2 * template.rows * template.columns * parameters["depth"]
        return [
            f"constexpr rl::conv_shape shape{{{shape}}};",
            f"rl::conv2d<{parameters['group_outputs']}L>({source}, {weight}, shape, {scratch},",
            "    [&](auto lane, long image, long channel, long r, auto value) {",
            f"  const long x = image * {outputs}L + channel;",
            *[f"  {line}" for line in self._epilogue()],
            "});",
        ]

    def _attention(self) -> list[str]:
        template, parameters = self.template, self.template.parameters
        depth, heads, rows = parameters["depth"], parameters["heads"], parameters["rows_each"]
        arguments = []
        for name in ("q", "k", "v"):
            operand = template.operands[name]
            arguments.append(f"{self._pointer_to(operand)}, {{{', '.join(f'{stride}L' for stride in operand.strides)}}}")
        out = self.pointer(template.name, write=True)
        out_strides = f"{{{rows * heads * depth}L, {depth}L, {heads * depth}L, 1L}}"
        sizes = f"{parameters['batch']}L, {heads}L, {rows}L, {parameters['keys']}L"
        causal = "true" if parameters["causal"] else "false"
        mask = self._mask()
        self.kernel.work = 4 * template.rows * template.columns * parameters["keys"]
        return [
            f"rl::attention<{depth}>({', '.join(arguments)},",
            f"    {out}, {out_strides}, nullptr, {sizes}, {parameters['scale']!r}f, {causal}{mask});",
        ]

    def _mask(self) -> str:
        operand = self.template.operands.get("mask")
        if operand is None:
            return ""
        kind = c_type(self.element_type(operand.buffer))
        strides = ", ".join(f"{stride}L" for stride in operand.strides)
        return f", rl::attention_mask<{kind}>{{{self._pointer_to(operand)}, {strides}}}"

    def _epilogue(self) -> list[str]:
        """What happens to each tile of results: the fused loops' bodies, and the stores of what is needed later."""
        writer = StatementWriter(self.r, self.pointer, self.element_type)
        writer.local[self.template.name] = "value"
        at = to_cpp(element_index(self.group.domain))
        if self.template.name in self.stored:
            writer.lines.append(f"lane.store({self.pointer(self.template.name, True)} + {at}, value);")
        for member in self.group.members[1:]:
            result = writer.write(body_in_domain(member, self.group.domain))
            if member.name in self.stored:
                writer.lines.append(f"lane.store({self.pointer(member.name, True)} + {at}, {result});")
            writer.local[member.name] = result
        return writer.lines

