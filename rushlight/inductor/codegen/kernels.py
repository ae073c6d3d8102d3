"""One group as one C++ function.

A kernel is a function over pointers: `in0, in1, ...` it reads, `out0, ...` it writes. The text names no graph buffer, so
groups that calculate the same share one function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from rushlight.core.dtype import dtype
from rushlight.inductor.codegen.expressions import SCALAR, StatementWriter, needs_scalar
from rushlight.inductor.codegen.types import c_type, compute_type
from rushlight.inductor.indexing import to_cpp, unflatten_index
from rushlight.inductor.ir import Buffer, ComputedBuffer, Indirect, Load, Reduction, Value, substitute, walk
from rushlight.inductor.scheduler import Group, body_in_domain, element_index, is_row_value, row_variables

ACCUMULATORS = {
    "sum": "rl::sum", "prod": "rl::prod", "max": "rl::max", "min": "rl::min", "any": "rl::any", "all": "rl::all",
    "argmax": "rl::argmax", "argmin": "rl::argmin",
}  # fmt: skip
STACK_BYTES = 1 << 18  # of rows that a thread keeps between two passes over them; more go to the arena
OPERATIONS = 8  # what an element of a loop is counted as, in floating-point operations of a product
CHUNK = 4096  # elements of a flat loop that a thread takes at a time


@dataclass
class Kernel:
    """The text of a function without its name, and the buffers to pass, in order."""

    parameters: list[tuple[str, str]] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    uses_status: bool = False
    work: int = 0

    def text(self, name: str) -> str:
        """The function's definition."""
        parameters = [f"{kind} {parameter}" for kind, parameter in self.parameters]
        if self.uses_status:
            parameters.append("int* status")
        body = "\n".join(f"  {line}" for line in self.body)
        return f"static void {name}({', '.join(parameters)}) {{\n{body}\n}}"


class KernelWriter:
    """Shared by loop and template kernels: parameters by first use."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], spilled: set[str] = frozenset()):
        self.group = group
        self.buffers = buffers
        self.kernel = Kernel()
        self.stored = group.stored | set(spilled)
        self._names: dict[tuple[str, bool], str] = {}

    def element_type(self, name: str) -> dtype:
        """The dtype of a buffer's elements."""
        return self.buffers[name].layout.dtype

    def pointer(self, name: str, write: bool = False) -> str:
        """The parameter through which a buffer is read or written."""
        written = self._names.get((name, True))
        if written is not None:
            return written
        found = self._names.get((name, write))
        if found is None:
            prefix = "out" if write else "in"
            found = f"{prefix}{sum(key[1] == write for key in self._names)}"
            self._names[name, write] = found
            kind = f"{'' if write else 'const '}{c_type(self.element_type(name))}*"
            self.kernel.parameters.append((kind, found))
            self.kernel.arguments.append(name)
        return found

    def note_status(self, body: Value) -> None:
        """Remember that the body may report an index error."""
        if any(isinstance(node, Indirect) for node in walk(body)):
            self.kernel.uses_status = True


def assign_passes(members: list[Buffer], is_row: Callable[[Buffer], bool]) -> tuple[dict[str, int], dict[str, int]]:
    """The pass in which each member is calculated; for row values, the pass after which they are known."""
    passes: dict[str, int] = {}
    after: dict[str, int] = {}
    for member in members:
        earliest, known = 0, -1
        for name in member.reads():
            if name in after:
                earliest, known = max(earliest, after[name] + 1), max(known, after[name])
            elif name in passes:
                earliest = max(earliest, passes[name])
        if not is_row(member):
            passes[member.name] = earliest
        else:
            after[member.name] = earliest if isinstance(member.data, Reduction) else known
    return passes, after


class LoopKernel(KernelWriter):
    """Writes a group of loops: rows in parallel, each in passes over its columns."""

    def __init__(self, group: Group, buffers: dict[str, Buffer]):
        super().__init__(group, buffers)
        self.domain = group.domain or _choose_domain(group)
        self.flat = group.domain is None and self.domain[0] == 1 and self.domain[1] > CHUNK
        if self.flat:
            self.domain = (math.ceil(group.numel / CHUNK), CHUNK)
        self.x, self.r = row_variables(self.domain)
        self.bodies = {member.name: self._body(member) for member in group.members}
        self.passes, self.after = assign_passes(group.members, self._is_row_value)

    def _body(self, member: ComputedBuffer) -> Value:
        if not self.flat:
            return body_in_domain(member, self.domain)
        linear, loop = element_index(self.domain), member.data
        return substitute(loop.body, dict(zip(loop.variables, unflatten_index(linear, loop.ranges), strict=True)))

    def _is_row_value(self, member: Buffer) -> bool:
        return not self.flat and self.group.domain is not None and is_row_value(member, self.domain)

    def write(self) -> Kernel:
        """The kernel."""
        rows = self.domain[0]
        body = self._row()
        if rows == 1:
            self.kernel.body = ["#pragma omp single", "{", "  [[maybe_unused]] constexpr long x = 0;", *indented(body), "}"]
        else:
            head = ["#pragma omp for schedule(static)", f"for (long x = 0; x < {rows}L; ++x) {{"]
            self.kernel.body = [*head, *indented(body), "}"]
        self.kernel.work = OPERATIONS * self.group.numel * len(self.group.members)
        return self.kernel

    def _row(self) -> list[str]:
        lines: list[str] = []
        if self.flat:
            rest = self.group.numel - CHUNK * (self.domain[0] - 1)
            lines.append(f"const long columns = x + 1 < {self.domain[0]}L ? {CHUNK}L : {rest}L;")
        scratch = self._scratch_rows()
        for name, row in scratch.items():
            lines.append(f"alignas(64) {compute_type(self.element_type(name))} {row}[{self.domain[1]}L];")
        scalars: dict[str, str] = {}
        last = max([*self.passes.values(), *self.after.values()], default=0)
        lines += self._row_values(-1, scalars)
        for number in range(last + 1):
            lines += self._pass(number, scalars, scratch)
            lines += self._row_values(number, scalars)
        return lines

    def _scratch_rows(self) -> dict[str, str]:
        """Members whose values a later pass reads, and that are not stored anyway; those beyond STACK_BYTES are stored."""
        needed: dict[str, str] = {}
        free = STACK_BYTES
        for member in self.group.members:
            number = self.passes.get(member.name, self.after.get(member.name, 0))
            for name in member.reads():
                if name in self.passes and name not in self.stored and name not in needed and self.passes[name] < number:
                    free -= self.domain[1] * max(4, self.element_type(name).itemsize)
                    if free < 0:
                        self.stored = self.stored | {name}
                    else:
                        needed[name] = f"row{len(needed)}"
        return needed

    def _in_pass(self, number: int) -> list[ComputedBuffer]:
        found = []
        for member in self.group.members:
            if self.passes.get(member.name) == number:
                found.append(member)
            elif self.after.get(member.name) == number and isinstance(member.data, Reduction):
                found.append(member)
        return found

    def _pass(self, number: int, scalars: dict[str, str], scratch: dict[str, str]) -> list[str]:
        members = self._in_pass(number)
        if not members:
            return []
        bodies = [self.bodies[member.name] for member in members]
        scalar = any(needs_scalar(body, self.r) for body in bodies)
        writer = self._writer(scalars)
        lines, accumulators = [], {}
        for member in members:
            if isinstance(member.data, Reduction):
                accumulators[member.name] = f"total_{len(scalars) + len(accumulators)}"
                lines.append(_accumulator(member.data, accumulators[member.name]))
        for member in members:
            self._element(member, writer, accumulators, scratch, number)
        head, tail = self._loop(scalar)
        lines += [head, *indented(writer.lines), tail]
        for name, accumulator in accumulators.items():
            scalars[name] = f"value_{len(scalars)}"
            lines.append(f"const auto {scalars[name]} = {accumulator}.finish();")
            lines += self._store_row_value(name, scalars[name])
        return lines

    def _loop(self, scalar: bool) -> tuple[str, str]:
        count = "columns" if self.flat else f"{self.domain[1]}L"
        if scalar:
            return f"for (long r = 0; r < {count}; ++r) {{ const rl::scalar_lane lane;", "}"
        return f"rl::for_each({count}, [&](auto lane, long r) {{", "});"

    def _writer(self, scalars: dict[str, str]) -> StatementWriter:
        writer = StatementWriter(self.r, self.pointer, self.element_type)
        writer.row_values = scalars
        return writer

    def _element(self, member, writer: StatementWriter, accumulators: dict, scratch: dict[str, str], number: int) -> None:
        body = self.bodies[member.name]
        self.note_status(body)
        for node in walk(body):
            if isinstance(node, Load) and node.buffer in scratch and node.buffer not in writer.local:
                writer.local[node.buffer] = writer.bind(f"lane.load({scratch[node.buffer]} + r)")
        result = writer.write(body)
        if member.name in accumulators:
            index = ", lane.index(r)" if member.data.reduction_type in ("argmax", "argmin") else ""
            writer.lines.append(f"{accumulators[member.name]}.add(lane, {result}{index});")
            return
        if member.name in self.stored:
            at = to_cpp(element_index(self.domain))
            writer.lines.append(f"lane.store({self.pointer(member.name, True)} + {at}, {result});")
        if member.name in scratch:
            writer.lines.append(f"lane.store({scratch[member.name]} + r, {result});")
        writer.local[member.name] = result

    def _row_values(self, number: int, scalars: dict[str, str]) -> list[str]:
        """Members with one value per row that are known after pass `number`, other than its reductions."""
        lines: list[str] = []
        for member in self.group.members:
            if self.after.get(member.name) != number or isinstance(member.data, Reduction):
                continue
            self.note_status(self.bodies[member.name])
            name = f"value_{len(scalars)}"
            writer = StatementWriter(self.r, self.pointer, self.element_type, lane=SCALAR, prefix=f"{name}_")
            writer.row_values = scalars
            result = writer.write(self.bodies[member.name])
            scalars[member.name] = result
            lines += [*writer.lines, *self._store_row_value(member.name, result)]
        return lines

    def _store_row_value(self, name: str, value: str) -> list[str]:
        if name not in self.stored:
            return []
        return [f"rl::scalar_lane{{}}.store({self.pointer(name, True)} + x, {value});"]


def _accumulator(loop: Reduction, name: str) -> str:
    kind = loop.body.dtype if loop.reduction_type in ("argmax", "argmin") else loop.dtype
    return f"rl::accumulator<{ACCUMULATORS[loop.reduction_type]}, {compute_type(kind)}> {name};"


def indented(lines: list[str], levels: int = 1) -> list[str]:
    """The lines, two blanks further right per level."""
    return [f"{'  ' * levels}{line}" for line in lines]


def _choose_domain(group: Group) -> tuple[int, int]:
    """Rows and columns of a group of elementwise loops: the longest run of trailing dimensions that all reads walk evenly."""
    widest = max(group.members, key=lambda member: len(member.data.ranges))
    ranges = widest.data.ranges
    candidates = [math.prod(ranges[start:]) for start in range(len(ranges))] or [1]
    for columns in candidates:
        domain = (group.numel // columns if columns else 1, columns)
        _, r = row_variables(domain)
        if not any(needs_scalar(body_in_domain(member, domain), r) for member in group.members):
            return domain
    return (group.numel // candidates[-1] if candidates[-1] else 1, candidates[-1])

