"""Writes a whole graph as one Python text: Triton kernels, and functions that launch them in order.

In: a lowered graph. Out: a `TritonProgram`. Its text defines `call(launcher, ...)`, which takes the addresses of inputs,
constants and folded constants and the values of the size symbols, and returns the memory of the results; and, if loops over
constants are folded, `fold(launcher, ...)`, which takes the addresses of constants and returns the memory of folded ones. A
`launcher` (see `inductor/triton/launcher.py`) allocates memory and runs kernels. Stage: inductor, code.
"""

from __future__ import annotations

from rushlight.inductor.codegen.triton.batches import batches_of, may_move
from rushlight.inductor.codegen.triton.combined import Form, combine, combined, form_of
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
        self._members: dict[Group, tuple[Launch, Form] | None] = {}
        self.external = {buffer.name for buffer in lowered.buffers if isinstance(buffer, InputBuffer | ConstantBuffer)}

    def write(self) -> TritonProgram:
        """Return the program."""
        wanted = [name for name in dict.fromkeys(view.buffer for view in self.lowered.outputs) if name]
        outputs = [name for name in wanted if name not in self.external]
        written = {write.buffer for write in self.lowered.writes}
        groups = schedule(self.lowered.buffers, set(outputs) | written, fuses_by_numbers=False)
        in_place = changed_in_place(groups, self.lowered.writes, set(outputs))
        launches = {group: self._launches_of(group, in_place) for group in groups}
        batches = self._batches(launches, set(outputs) | written)
        groups = [group for batch in batches for group in batch]
        uses_status = any(STATUS in launch.arguments for made in launches.values() for launch in made)
        if not uses_status:  # a program that may fail must not change its inputs
            in_place |= written_in_place(groups, self.lowered.writes, set(outputs))
        made = [(batch, self._combined(batch, launches, in_place)) for batch in batches]
        lifetimes = self._lifetimes(made, set(outputs) | set(in_place), written)
        program = TritonProgram(
            launches=[launch for batch, launches in made if not batch[0].constant for launch in launches],
            fold_launches=[launch for batch, launches in made if batch[0].constant for launch in launches],
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

    def _batches(self, launches: dict[Group, list[Launch]], kept: set[str]) -> list[list[Group]]:
        """Return batches of groups that are launched together. `kept` are buffers outside of the arena."""
        kept = kept | self.external
        groups = list(launches)
        keys = [self._key(group, launches[group], kept) for group in groups]
        batches = batches_of(groups, keys)
        for batch in (batch for batch in batches if len(batch) > 1):
            for group in batch:
                group.together = batch
        return batches

    def _key(self, group: Group, launches: list[Launch], kept: set[str]) -> tuple | None:
        """Return a key that is equal for groups that may share a launch; None if there is none."""
        if len(launches) > 1 or not may_move(group, self.buffers, lambda name: name in kept):
            return None
        member = self._member(group, launches[0])
        return None if member is None else member[1].key

    def _member(self, group: Group, launch: Launch) -> tuple[Launch, Form] | None:
        """Return a launch that a combined one may contain, and its form; None if there is none."""
        if group not in self._members:
            if launch.kind == "pointwise" and not launch.open:
                launch = ElementKernel(group, self.buffers, self.symbols.hints, any_block=True).write()
            form = form_of(launch)
            self._members[group] = None if form is None else (launch, form)
        return self._members[group]

    def _combined(
        self, batch: list[Group], launches: dict[Group, list[Launch]], in_place: dict[str, str]
    ) -> list[Launch]:  # fmt: skip
        """Return the launches of a batch."""
        if len(batch) == 1:
            return launches[batch[0]]
        parts = combine([self._member(group, launches[group][0]) for group in batch], in_place)
        return [combined(part, in_place) if len(part) > 1 else launches[part[0][0].group][0] for part in parts]

    def _lifetimes(
        self, made: list[tuple[list[Group], list[Launch]]], elsewhere: set[str], written: set[str]
    ) -> list[Lifetime]:  # fmt: skip
        """Return the lifetimes of buffers in the arena, counted in batches. Values that are written back to inputs live until
        the end."""
        last = {name: place for place, (batch, _) in enumerate(made) for group in batch for name in group.reads()}
        last |= dict.fromkeys(written, len(made))
        blocks = []
        for place, (batch, launches) in enumerate(made):
            for member in (member for group in batch for member in group.members if member.name in group.stored):
                if member.name not in elsewhere and not batch[0].constant:
                    nbytes = as_size(member.layout.numel * member.layout.dtype.itemsize)
                    blocks.append(Lifetime(member.name, nbytes, place, last.get(member.name, place)))
            for launch in launches:
                blocks += [Lifetime(name, nbytes, place, place) for name, nbytes in launch.scratch.items()]
        return list({block.name: block for block in blocks}.values())

    def _used_constants(self, made: list[tuple[list[Group], list[Launch]]], wanted: list[str]) -> list[ConstantBuffer]:
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
