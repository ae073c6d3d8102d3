"""Writes a whole graph as one Python text: Triton kernels, and functions that launch them in order.

In: a lowered graph. Out: a `TritonProgram`. Its text defines `call(launcher, ...)`, which takes the addresses of inputs,
constants and folded constants and the values of the size symbols, and returns the memory of the results; and, if loops over
constants are folded, `fold(launcher, ...)`, which takes the addresses of constants and returns the memory of folded ones. A
`launcher` (see `inductor/triton/launcher.py`) allocates memory and runs kernels. Stage: inductor, code.
"""

from __future__ import annotations

from rushlight.inductor.codegen.triton.functions import definitions_for
from rushlight.inductor.codegen.triton.kernels import STATUS, Launch, Limits
from rushlight.inductor.codegen.triton.loops import ElementKernel, RowKernel
from rushlight.inductor.codegen.triton.ordered import ordered_launches
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.codegen.triton.templates import Precision, template_launches
from rushlight.inductor.codegen.triton.wrapper import wrapper_text
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.ir import Buffer, ConstantBuffer, InputBuffer
from rushlight.inductor.memory import Lifetime, plan, plan_slots
from rushlight.inductor.scheduler import Group, is_ordered, schedule
from rushlight.inductor.sizes import as_size
from rushlight.inductor.write_backs import changed_in_place, written_in_place

HEAD = """import triton
import triton.language as tl"""


class TritonProgramWriter:
    """Writes the program of a lowered graph. NoTritonForm if a group has no Triton form."""

    def __init__(self, lowered: LoweredGraph, precision: Precision, limits: Limits | None = None):
        self.lowered = lowered
        self.limits = limits or Limits()
        self.precision = precision
        self.symbols = lowered.symbols
        self.buffers: dict[str, Buffer] = {buffer.name: buffer for buffer in lowered.buffers}
        self.external = {buffer.name for buffer in lowered.buffers if isinstance(buffer, InputBuffer | ConstantBuffer)}

    def write(self) -> TritonProgram:
        """Return the program."""
        wanted = [name for name in dict.fromkeys(view.buffer for view in self.lowered.outputs) if name]
        outputs = [name for name in wanted if name not in self.external]
        written = {write.buffer for write in self.lowered.writes}
        groups = schedule(self.lowered.buffers, set(outputs) | written)
        in_place = changed_in_place(groups, self.lowered.writes, set(outputs))
        made = [(group, self._launches_of(group, in_place)) for group in groups]
        uses_status = any(STATUS in launch.arguments for _, launches in made for launch in launches)
        if not uses_status:  # a program that may fail must not change its inputs
            in_place |= written_in_place(groups, self.lowered.writes, set(outputs))
        lifetimes = self._lifetimes(made, set(outputs) | set(in_place), written)
        program = TritonProgram(
            launches=[launch for group, launches in made if not group.constant for launch in launches],
            fold_launches=[launch for group, launches in made if group.constant for launch in launches],
            constants=self._used_constants(made, wanted),
            folded=[member for group in groups if group.constant for member in group.members if member.name in group.stored],
            outputs=outputs, groups=groups, in_place=in_place, uses_status=uses_status,
            arena=plan_slots(lifetimes, self.symbols.hints) if self.symbols else plan(lifetimes),
        )  # fmt: skip
        program.kernel_source = self._kernel_text(program)
        program.wrapper_source = wrapper_text(self.lowered, program)
        return program

    def _launches_of(self, group: Group, in_place: dict[str, str]) -> list[Launch]:
        hints = self.symbols.hints
        if group.template is not None:
            return template_launches(group, self.buffers, hints, self.precision, self.limits)
        if is_ordered(group.members[0]):
            return ordered_launches(group, self.buffers, hints, group.members[0].name in in_place)
        if group.domain is None:
            return [ElementKernel(group, self.buffers, hints).write()]
        return [RowKernel(group, self.buffers, hints).write()]

    def _lifetimes(
        self, made: list[tuple[Group, list[Launch]]], elsewhere: set[str], written: set[str]
    ) -> list[Lifetime]:  # fmt: skip
        """Return the lifetimes of buffers in the arena. Values that are written back to inputs live until the end."""
        last = {name: group.order for group, _ in made for name in group.reads()} | dict.fromkeys(written, len(made))
        blocks = []
        for group, launches in made:
            for member in group.members:
                if member.name in group.stored and member.name not in elsewhere and not group.constant:
                    nbytes = as_size(member.layout.numel * member.layout.dtype.itemsize)
                    blocks.append(Lifetime(member.name, nbytes, group.order, last.get(member.name, group.order)))
            for launch in launches:
                blocks += [Lifetime(name, nbytes, group.order, group.order) for name, nbytes in launch.scratch.items()]
        return list({block.name: block for block in blocks}.values())

    def _used_constants(self, made: list[tuple[Group, list[Launch]]], wanted: list[str]) -> list[ConstantBuffer]:
        used = {argument for _, launches in made for launch in launches for argument in launch.arguments}
        return [buffer for buffer in self.lowered.constants if buffer.name in used or buffer.name in wanted]

    # Text

    def _kernel_text(self, program: TritonProgram) -> str:
        """Name all kernels, and return the text that defines them."""
        kernels: dict[str, str] = {}
        parts = []
        for launch in (*program.fold_launches, *program.launches):
            text = launch.text("@")
            key = f"{text} {launch.parameters} {launch.options}"  # a kernel is compiled for the types of its pointers
            if key not in kernels:
                kernels[key] = launch.kernel = f"{launch.title()}_{len(kernels)}"
                comments = "\n".join(f"# {line}" for line in [", ".join(launch.group.origins()), *launch.group.lines()])
                parts.append(f"{comments}\n{text.replace('def @', f'def {launch.kernel}', 1)}")
            launch.kernel = kernels[key]
        body = "\n\n\n".join(parts)
        return "\n\n\n".join([HEAD, *definitions_for(body), *parts]) + "\n"
