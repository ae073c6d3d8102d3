"""Reductions whose results lie side by side in memory, as `x.sum(0)`: every lane adds up a result of its own.

In: a group in which every member gives one value per row of its domain. Out: a kernel that takes runs of results, and walks
down the reduced dimension for each vector of them; reading along memory, where `LoopKernel` would jump.
"""

from __future__ import annotations

from collections.abc import Mapping

from rushlight.core.algebra import Var, unflatten_index
from rushlight.inductor.codegen.expressions import StatementWriter, needs_scalar
from rushlight.inductor.codegen.kernels import ACCUMULATORS, OPERATIONS, Kernel, KernelWriter, assign_passes, indented
from rushlight.inductor.codegen.types import compute_type, literal, size_operand, size_text
from rushlight.inductor.ir import Buffer, Load, Reduction, Value, substitute, walk
from rushlight.inductor.scheduler import Group, is_row_value
from rushlight.inductor.sizes import Size, as_size, evaluate, quotient, rounded_up, stride_along

BLOCK = 64  # results that a thread takes at a time
NARROWEST = 16  # results side by side that make it worthwhile: a vector's worth


def column_variables(group: Group, width: Size) -> tuple[Var, Var, Var]:
    """x counts runs of results, c the results of a run, r the values that each combines."""
    rows, values = group.domain
    return Var("x", quotient(rows, width)), Var("c", width), Var("r", values)


def run_of_results(group: Group, hints: Mapping[Var, int]) -> Size:
    """How many results lie side by side; 0 for a group that is better calculated row by row."""
    if group.domain is None or not all(is_row_value(member, group.domain) for member in group.members):
        return 0
    reductions = [member.data for member in group.members if isinstance(member.data, Reduction)]
    widths = [loop.ranges[-1] for loop in reductions if loop.ranges]
    width = max(widths, key=lambda size: evaluate(size, hints), default=0)
    if evaluate(width, hints) < NARROWEST or quotient(group.domain[0], width) is None:
        return 0
    _, c, r = column_variables(group, width)
    bodies = [_body(member, group, width) for member in group.members]
    if any(needs_scalar(body, c) for body in bodies):
        return 0
    loads = [node.index for body in bodies for node in walk(body) if isinstance(node, Load)]
    along = sum(stride_along(index, c) == 1 and index.contains(r) for index in loads)
    return width if along > sum(stride_along(index, r) == 1 for index in loads) else 0


def _body(member: Buffer, group: Group, width: Size) -> Value:
    """A member's body with its variables expressed by x, c and r."""
    (x, c, r), loop = column_variables(group, width), member.data
    replacements = dict(zip(loop.variables, unflatten_index(x * width + c, loop.ranges), strict=True))
    if isinstance(loop, Reduction):
        inner = unflatten_index(r, loop.reduction_ranges)
        replacements |= dict(zip(loop.reduction_variables, inner, strict=True))
    return substitute(loop.body, replacements)


class ColumnKernel(KernelWriter):
    """Writes a group for which `run_of_results` gave `width`."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], width: Size):
        super().__init__(group, buffers)
        self.width = width
        self.x, self.c, self.r = column_variables(group, width)
        self.bodies = {member.name: _body(member, group, width) for member in group.members}
        self.known: dict[str, str] = {}
        for body in self.bodies.values():
            self.note_status(body)

    def write(self) -> Kernel:
        """The kernel."""
        runs, blocks = self.x.extent, quotient(rounded_up(self.width, BLOCK), BLOCK)
        block = f"block % {size_operand(blocks)} * {BLOCK}L" if blocks != 1 else "0L"
        width = size_text(self.width)
        self.kernel.body = [
            "#pragma omp for schedule(static)",
            f"for (long block = 0; block < {size_text(as_size(runs * blocks))}; ++block) {{",
            f"  [[maybe_unused]] const long x = block / {size_operand(blocks)}, first = {block};",
            f"  const long count = first + {BLOCK}L < {width} ? {BLOCK}L : {width} - first;",
            "  rl::for_each(count, [&](auto lane, long i) {",
            "    const long c = first + i;",
            *indented(self._passes(), 2),
            "  });",
            "}",
        ]
        self.kernel.work = as_size(self.group.numel * (OPERATIONS * len(self.group.members)))
        return self.kernel

    def _passes(self) -> list[str]:
        _, after = assign_passes(self.group.members, lambda member: True)
        lines: list[str] = []
        for number in range(-1, max(after.values()) + 1):
            members = [member for member in self.group.members if after[member.name] == number]
            reductions = [member for member in members if isinstance(member.data, Reduction)]
            lines += self._reduce(reductions) if reductions else []
            for member in members:
                if member not in reductions:
                    lines += self._row_value(member)
        return lines

    def _reduce(self, members: list[Buffer]) -> list[str]:
        """One walk down the reduced dimension, for all reductions that can share it."""
        writer = self._writer("tmp")
        names = {member.name: f"total_{len(self.known) + position}" for position, member in enumerate(members)}
        for member in members:
            result = writer.write(self.bodies[member.name])
            at = ", lane.broadcast((int64_t)r)" if member.data.reduction_type in ("argmax", "argmin") else ""
            writer.lines.append(f"{names[member.name]}.add({result}{at});")
        lines = [_accumulator(member.data, names[member.name]) for member in members]
        lines += [f"for (long r = 0; r < {size_text(self.r.extent)}; ++r) {{", *indented(writer.lines), "}"]
        for member in members:
            lines += self._finish(member, f"{names[member.name]}.finish()")
        return lines

    def _row_value(self, member: Buffer) -> list[str]:
        writer = self._writer(f"value_{len(self.known)}_")
        result = writer.write(self.bodies[member.name])
        return [*writer.lines, *self._finish(member, result)]

    def _finish(self, member: Buffer, value: str) -> list[str]:
        name = self.known[member.name] = f"value_{len(self.known)}"
        lines = [f"const auto {name} = {value};"]
        if member.name in self.stored:
            place = f"c + {size_operand(self.width)}*x" if self.x.extent != 1 else "c"
            lines.append(f"lane.store({self.pointer(member.name, True)} + {place}, {name});")
        return lines

    def _writer(self, prefix: str) -> StatementWriter:
        writer = StatementWriter(self.c, self.pointer, self.element_type, self.stream, prefix=prefix)
        writer.local = dict(self.known)
        return writer


def _accumulator(loop: Reduction, name: str) -> str:
    kind = loop.body.dtype if loop.reduction_type in ("argmax", "argmin") else loop.dtype
    zero = literal(0, kind) if compute_type(kind) != "bool" else "false"
    return f"rl::column_accumulator<{ACCUMULATORS[loop.reduction_type]}, decltype(lane.broadcast({zero}))> {name};"
