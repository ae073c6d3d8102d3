"""Column reductions, such as `x.sum(0)`: results are contiguous in memory, and each vector lane accumulates its own result.

In: a group in which every member has one value per row of its domain. Out: a kernel over runs of results, which walks down the
reduced dimension for each vector of them. It reads contiguous memory, where `LoopKernel` would read with a stride.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rushlight.core.algebra import Expr, Var, unflatten_index
from rushlight.core.dtype import float32
from rushlight.inductor.codegen.cpp.expressions import StatementWriter, looked_up, needs_scalar
from rushlight.inductor.codegen.cpp.kernels import (
    ACCUMULATORS,
    OPERATIONS_PER_ELEMENT,
    Kernel,
    KernelWriter,
    indented,
)
from rushlight.inductor.codegen.cpp.types import compute_type, literal, size_operand, size_text
from rushlight.inductor.codegen.passes import assign_passes
from rushlight.inductor.ir import Buffer, Load, Reduction, Value, substitute, walk
from rushlight.inductor.scheduler import Group, is_row_value
from rushlight.inductor.sizes import Size, as_size, evaluate, quotient, rounded_up, stride_along

BLOCK = 64  # results per block of a thread
MIN_WIDTH = 16  # fewer contiguous results do not fill a vector
PART = 128  # long sums are split into parts of this many values, for accuracy
ROWS_TOGETHER, VECTORS_TOGETHER = 4, 2  # tile size for loops that resemble a matrix product
VECTORS_PER_ROW = 4  # vectors computed together in other loops, so that whole cache lines are read
MAX_TILE_STEPS = 24  # for larger bodies, one vector is computed at a time, to limit registers


def column_variables(group: Group, width: Size) -> tuple[Var, Var, Var]:
    """Return the variables x, which counts runs of results; c, which counts results in a run; and r, which counts the values
    combined in a result."""
    rows, values = group.domain
    return Var("x", quotient(rows, width)), Var("c", width), Var("r", values)


def run_of_results(group: Group, hints: Mapping[Var, int]) -> Size:
    """Return the number of contiguous results; 0 if the group is better computed row by row."""
    if group.domain is None or not all(is_row_value(member, group.domain) for member in group.members):
        return 0
    reductions = [member.data for member in group.members if isinstance(member.data, Reduction)]
    widths = [loop.ranges[-1] for loop in reductions if loop.ranges]
    width = max(widths, key=lambda size: evaluate(size, hints), default=0)
    if evaluate(width, hints) < MIN_WIDTH or quotient(group.domain[0], width) is None:
        return 0
    _, c, r = column_variables(group, width)
    bodies = [_body(member, group, width) for member in group.members]
    if any(needs_scalar(body, c) for body in bodies):
        return 0
    steps = [step for body in bodies for step in _strides_of_loads(body, c, r)]
    along = sum(across == 1 and down != 0 for across, down in steps)
    rows = sum(down == 1 for _, down in steps)
    jumps_along, jumps_down = (sum(step[way] not in (0, 1) for step in steps) for way in (0, 1))
    return width if along > rows or (along == rows and jumps_along < jumps_down) else 0


def _strides_of_loads(body: Value, *variables: Var) -> list[tuple[Size | None, ...]]:
    """Return each load's strides along some variables. A stride is None if the index is divided, or contains a position read
    from memory that depends on the variable."""
    positions = {variable: looked_up(body, variable) for variable in variables}

    def step(index: Expr, variable: Var) -> Size | None:
        found = any(index.contains(position) for position in positions[variable])
        return None if found else stride_along(index, variable)

    reads = [node.index for node in walk(body) if isinstance(node, Load)]
    return [tuple(step(index, variable) for variable in variables) for index in reads]


def _body(member: Buffer, group: Group, width: Size) -> Value:
    """Return a member's body in terms of x, c and r."""
    (x, c, r), loop = column_variables(group, width), member.data
    replacements = dict(zip(loop.variables, unflatten_index(x * width + c, loop.ranges), strict=True))
    if isinstance(loop, Reduction):
        inner = unflatten_index(r, loop.reduction_ranges)
        replacements |= dict(zip(loop.reduction_variables, inner, strict=True))
    return substitute(loop.body, replacements)


@dataclass
class _Results:
    """A vector of results in run `x`, starting at column `c`: the members' bodies there, and the names of known values."""

    x: Var
    c: Var
    suffix: str
    bodies: dict[str, Value]
    known: dict[str, str] = field(default_factory=dict)


class ColumnKernel(KernelWriter):
    """Writes a group for which `run_of_results` returned `width`."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], width: Size):
        super().__init__(group, buffers)
        self.width = width
        self.x, self.c, self.r = column_variables(group, width)
        self.bodies = {member.name: _body(member, group, width) for member in group.members}
        for body in self.bodies.values():
            self.note_status(body)

    def write(self) -> Kernel:
        """Return the kernel."""
        runs, blocks = self.x.extent, quotient(rounded_up(self.width, BLOCK), BLOCK)
        rows, vectors = self._choose_tile(runs)
        parts = quotient(rounded_up(runs, rows), rows)
        block, width = f"block % {size_operand(blocks)} * {BLOCK}L" if blocks != 1 else "0L", size_text(self.width)
        position = f"block / {size_operand(blocks)}" + (f" * {rows}" if rows > 1 else "")
        self.kernel.body = [
            f"for (const long block : rl::shared({size_text(as_size(parts * blocks))})) {{",
            f"  [[maybe_unused]] const long x = {position}, first = {block};",
            f"  const long count = first + {BLOCK}L < {width} ? {BLOCK}L : {width} - first;",
            *indented(self._compute_in_tiles(rows, vectors) if vectors > 1 else self._compute_by_vectors("count", "first + i")),
            "}",
        ]
        self.kernel.work = as_size(self.group.numel * (OPERATIONS_PER_ELEMENT * len(self.group.members)))
        return self.kernel

    def _compute_by_vectors(self, count: str, column: str) -> list[str]:
        """Compute one vector of results after the other."""
        results = _Results(self.x, self.c, "", self.bodies)
        head = [f"rl::for_each({count}, [&](auto lane, long i) {{", f"  const long c = {column};"]
        return [*head, *indented(self._write_passes([results])), "});"]

    def _choose_tile(self, runs: Size) -> tuple[int, int]:
        """Return the number of rows and vectors of results computed together."""
        loads = [node.index for body in self.bodies.values() for node in walk(body) if isinstance(node, Load)]
        if sum(1 for body in self.bodies.values() for _ in walk(body)) > MAX_TILE_STEPS:
            return 1, 1
        # Like a matrix product: each vector is combined with numbers that all columns share.
        shared = any(index.contains(self.r) and not index.contains(self.c) for index in loads)
        if shared and not (isinstance(runs, int) and runs < ROWS_TOGETHER):
            return ROWS_TOGETHER, VECTORS_TOGETHER
        return 1, 1 if isinstance(self.width, int) and self.width < BLOCK else VECTORS_PER_ROW

    def _compute_in_tiles(self, rows: int, vectors: int) -> list[str]:
        """Compute tiles of several rows and vectors, which share loads, and then the remaining columns. Rows past the end
        repeat the last row."""
        tile = []
        for number in range(rows * vectors):
            x = Var(f"x{number // vectors}", self.x.extent) if rows > 1 else self.x
            c = Var(f"c{number % vectors}", self.c.extent)
            bodies = {name: substitute(body, {self.x: x, self.c: c}) for name, body in self.bodies.items()}
            tile.append(_Results(x, c, str(number), bodies))
        last = size_text(as_size(self.x.extent - 1))
        starts = ", ".join(f"x{row} = x + {row} < {last} ? x + {row} : {last}" for row in range(rows))
        columns = ", ".join(f"c{number} = first + done + {number} * rl::lanes" for number in range(vectors))
        rest = self._compute_by_vectors("count - done", "first + done + i")
        each_row = [f"for (long row = x; row <= x{rows - 1}; ++row) {{", "  const long x = row;", *indented(rest), "}"]
        return [
            *([f"const long {starts};"] if rows > 1 else []),
            "long done = 0;",
            f"for (; done + {vectors} * rl::lanes <= count; done += {vectors} * rl::lanes) {{",
            "  const rl::vector_lane lane;",
            f"  const long {columns};",
            *indented(self._write_passes(tile)),
            "}",
            *(each_row if rows > 1 else rest),
        ]

    def _write_passes(self, parts: list[_Results]) -> list[str]:
        _, after = assign_passes(self.group.members, lambda member: True)
        lines: list[str] = []
        for number in range(-1, max(after.values()) + 1):
            members = [member for member in self.group.members if after[member.name] == number]
            reductions = [member for member in members if isinstance(member.data, Reduction)]
            lines += self._reduce(reductions, parts) if reductions else []
            for member in members:
                if member not in reductions:
                    lines += [line for results in parts for line in self._write_row_value(member, results)]
        return lines

    def _reduce(self, members: list[Buffer], parts: list[_Results]) -> list[str]:
        """Write one loop along the reduced dimension, for all reductions that can share it."""
        lines, inner, after, finish = [], [], [], []
        for results in parts:
            writer = self._make_writer("tmp", results)
            for position, member in enumerate(members):
                name = f"total{results.suffix}_{len(results.known) + position}"
                lines.append(_declare_accumulator(member.data, name))
                in_parts = len(parts) > 1 and member.data.reduction_type == "sum" and member.data.dtype is float32
                found = writer.write(results.bodies[member.name])
                at = ", r" if member.data.reduction_type in ("argmax", "argmin") else ""
                writer.lines.append(f"{name}.{'put' if in_parts else 'add'}({found}{at});")
                after += [f"{name}.end_part();"] if in_parts else []
                finish.append((member, f"{name}.finish()", results))
            inner += writer.lines
        lines += _reduction_loop(size_text(self.r.extent), inner, after)
        return [*lines, *(line for each in finish for line in self._finish_member(*each))]

    def _write_row_value(self, member: Buffer, results: _Results) -> list[str]:
        writer = self._make_writer(f"value{results.suffix}_{len(results.known)}_", results)
        result = writer.write(results.bodies[member.name])
        return [*writer.lines, *self._finish_member(member, result, results)]

    def _finish_member(self, member: Buffer, value: str, results: _Results) -> list[str]:
        name = results.known[member.name] = f"value{results.suffix}_{len(results.known)}"
        lines = [f"const auto {name} = {value};"]
        if member.name in self.stored:
            position = f"{results.c} + {size_operand(self.width)}*{results.x}" if self.x.extent != 1 else str(results.c)
            lines.append(f"lane.store({self.pointer(member.name, True)} + {position}, {name});")
        return lines

    def _make_writer(self, prefix: str, results: _Results) -> StatementWriter:
        start = f"{prefix}{results.suffix}_" if prefix == "tmp" and results.suffix else prefix
        writer = StatementWriter(results.c, self.pointer, self.element_type, self.stream, prefix=start)
        writer.local = dict(results.known)
        return writer


def _reduction_loop(count: str, inner: list[str], after: list[str]) -> list[str]:
    """Return the loop down the reduced dimension, with statements after each part of it."""
    if not after:
        return [f"for (long r = 0; r < {count}; ++r) {{", *indented(inner), "}"]
    return [
        f"for (long part = 0; part < {count}; part += {PART}) {{",
        f"  const long end = part + {PART} < {count} ? part + {PART} : {count};",
        "  for (long r = part; r < end; ++r) {",
        *indented(inner, 2),
        "  }",
        *indented(after),
        "}",
    ]


def _declare_accumulator(loop: Reduction, name: str) -> str:
    kind = loop.body.dtype if loop.reduction_type in ("argmax", "argmin") else loop.dtype
    zero = literal(0, kind) if compute_type(kind) != "bool" else "false"
    return f"rl::column_accumulator<{ACCUMULATORS[loop.reduction_type]}, decltype(lane.broadcast({zero}))> {name};"
