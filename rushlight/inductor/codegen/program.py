"""A whole graph as one C++ translation unit with one entry.

`rushlight_entry(void** buffers)` runs every kernel; `buffers` holds inputs, constants, packed constants, outputs and the
arena, in the order of `Program.slots`. `rushlight_prepare(void** buffers)` packs constants: the constants, then the packed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rushlight.inductor.codegen.columns import ColumnKernel, run_of_results
from rushlight.inductor.codegen.kernels import Kernel, LoopKernel
from rushlight.inductor.codegen.templates import PackedOperand, TemplateKernel
from rushlight.inductor.codegen.types import c_type
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.ir import Buffer, ConstantBuffer, InputBuffer
from rushlight.inductor.memory import ArenaPlan, Lifetime, plan
from rushlight.inductor.scheduler import Group, schedule

# A barrier between kernels costs about a microsecond: threads pay when a kernel has at least this many operations on average.
PARALLEL_WORK = 200_000

HEADERS = ("vec", "elementwise", "math", "reduce", "gemm", "attention", "conv", "checks")


@dataclass
class Program:
    """The text, what to pass to it, and what was decided on the way."""

    source: str = ""
    slots: list[str] = field(default_factory=list)
    constants: list[ConstantBuffer] = field(default_factory=list)
    packed: list[PackedOperand] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    arena: ArenaPlan | None = None
    groups: list[Group] = field(default_factory=list)


class ProgramWriter:
    """Writes the program of one lowered graph for a number of threads."""

    def __init__(self, lowered: LoweredGraph, threads: int):
        self.lowered = lowered
        self.threads = threads
        self.buffers: dict[str, Buffer] = {buffer.name: buffer for buffer in lowered.buffers}
        self.external = {buffer.name for buffer in lowered.buffers if isinstance(buffer, InputBuffer | ConstantBuffer)}
        self.outputs = [name for name in dict.fromkeys(view.buffer for view in lowered.outputs) if name]
        self.packed: dict[str, PackedOperand] = {}
        self.scratch: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.calls: list[tuple[Group, str, Kernel]] = []

    def write(self) -> Program:
        """The program."""
        own_outputs = [name for name in self.outputs if name not in self.external]
        groups = schedule(self.lowered.buffers, set(own_outputs))
        for group in groups:
            self._kernel(group)
        arena = plan(self._lifetimes(groups, set(own_outputs)))
        constants = self._used_constants()
        packed = [operand for operand in self.packed.values() if operand.constant]
        program = Program(constants=constants, packed=packed, outputs=own_outputs, arena=arena, groups=groups)
        program.slots = [
            *(buffer.name for buffer in self.lowered.inputs), *(buffer.name for buffer in constants),
            *(operand.name for operand in packed), *own_outputs,
        ]  # fmt: skip
        program.source = self._source(program)
        return program

    def _kernel(self, group: Group) -> None:
        if group.template is not None:
            writer = TemplateKernel(group, self.buffers)
            kernel = writer.write()
            if writer.packed is not None:
                self.packed[writer.packed.name] = writer.packed
            if writer.scratch is not None:
                self.scratch[writer.scratch[0]] = writer.scratch[1]
        else:
            run = run_of_results(group)
            writer = ColumnKernel(group, self.buffers, run) if run else LoopKernel(group, self.buffers)
            kernel = writer.write()
        group.stored = writer.stored
        text = kernel.text("@")
        name = self.functions.setdefault(text, f"kernel_{len(self.functions)}")
        self.calls.append((group, name, kernel))

    def _lifetimes(self, groups: list[Group], outputs: set[str]) -> list[Lifetime]:
        last = {name: group.order for group in groups for name in group.reads()}
        blocks = []
        for group in groups:
            for member in group.members:
                if member.name in group.stored and member.name not in outputs:
                    nbytes = member.layout.numel * member.layout.dtype.itemsize
                    blocks.append(Lifetime(member.name, nbytes, group.order, last.get(member.name, group.order)))
        orders = {argument: group.order for group, _, kernel in self.calls for argument in kernel.arguments}
        for name, operand in self.packed.items():
            if not operand.constant:
                nbytes = 4 * operand.depth * (operand.columns + 64)
                blocks.append(Lifetime(name, nbytes, orders[name], orders[name]))
        return blocks

    def _used_constants(self) -> list[ConstantBuffer]:
        used = {argument for _, _, kernel in self.calls for argument in kernel.arguments}
        used |= {operand.source.buffer for operand in self.packed.values()} | set(self.outputs)
        return [buffer for buffer in self.lowered.constants if buffer.name in used]

    # Text

    def _source(self, program: Program) -> str:
        includes = "\n".join(f"#include <rushlight/{name}.h>" for name in HEADERS)
        functions = []
        for text, name in self.functions.items():
            comment = "".join(f"// {line}\n" for line in self._comments(name))
            functions.append(comment + text.replace("@", name, 1))
        parts = [includes, *functions, self._prepare(program), self._entry(program)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _comments(self, name: str) -> list[str]:
        """The operators and the user's lines behind a function (those of its first use)."""
        group = next(group for group, called, _ in self.calls if called == name)
        origins = [getattr(member, "origin", "") or member.data.origin for member in group.members]
        lines = dict.fromkeys(line for member in group.members for line in member.lines)
        return [", ".join(dict.fromkeys(origins)), *lines]

    def _prepare(self, program: Program) -> str:
        if not program.packed:
            return ""
        position = {buffer.name: index for index, buffer in enumerate(program.constants)}
        lines = []
        for index, operand in enumerate(program.packed):
            source = self.buffers[operand.source.buffer]
            kind = c_type(source.layout.dtype)
            lines.append(
                f"  rl::pack_b((const {kind}*)buffers[{position[source.name]}] + {operand.source.offset}L, "
                f"{operand.source.strides[0]}L, {operand.source.strides[1]}L, {operand.depth}L, {operand.columns}L, "
                f"(float*)buffers[{len(program.constants) + index}]);"
            )
        body = "\n".join(f"  {line}" for line in lines)
        region = f"  #pragma omp parallel num_threads({self.threads})\n  {{\n{body}\n  }}"
        return f'extern "C" int rushlight_prepare(void** buffers) {{\n{region}\n  return 0;\n}}'

    def _entry(self, program: Program) -> str:
        lines = ["int status_value = 0;", "int* status = &status_value;"]
        names: dict[str, str] = {}
        for index, slot in enumerate(program.slots):
            names[slot] = self._declare(slot, f"buffers[{index}]", lines)
        arena = f"((char*)buffers[{len(program.slots)}])"
        for name, offset in program.arena.offsets.items():
            names[name] = self._declare(name, f"({arena} + {offset}L)", lines)
        total = str(program.arena.nbytes)
        for name, size in self.scratch.items():
            lines.append(f"char* {name} = {arena} + {total};")
            total = f"{total} + {self.threads} * {size}"
            names[name] = name
        calls = self._calls(names)
        if self.threads > 1 and sum(kernel.work for _, _, kernel in self.calls) >= PARALLEL_WORK * len(self.calls):
            calls = [f"#pragma omp parallel num_threads({self.threads})", "{", *(f"  {call}" for call in calls), "}"]
        body = "\n".join(f"  {line}" for line in [*lines, *calls, "(void)status;", "return status_value;"])
        arena_size = f'extern "C" long rushlight_arena_bytes() {{ return {total}; }}'
        return f'{arena_size}\n\nextern "C" int rushlight_entry(void** buffers) {{\n{body}\n}}'

    def _declare(self, name: str, address: str, lines: list[str]) -> str:
        kind = "float" if name in self.packed else c_type(self.buffers[name].layout.dtype)
        lines.append(f"{kind}* {name} = ({kind}*){address};")
        return name

    def _calls(self, names: dict[str, str]) -> list[str]:
        calls = []
        for group, name, kernel in self.calls:
            arguments = [names[argument] for argument in kernel.arguments]
            if kernel.uses_status:
                arguments.append("status")
            line = next((line for member in group.members[::-1] for line in member.lines), "")
            calls.append(f"{name}({', '.join(arguments)});" + (f"  // {line}" if line else ""))
        return calls
