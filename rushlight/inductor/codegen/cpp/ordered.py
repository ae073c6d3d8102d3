"""Scatters and scans as C++ functions: loops whose points act one after the other.

A scatter first writes its base, unless the base is in place already, and then goes through its points. If points with different
outer indices never write to the same position, threads share the outer points. Otherwise every thread goes through all points
and only writes to its own range of positions, so that colliding points act in order. If there is little work per point, one
thread does everything. A scan walks along its dimension, with vector lanes along the inner dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.core.algebra import Expr, Var, to_cpp, unflatten_index
from rushlight.core.dtype import bool_
from rushlight.inductor.codegen.cpp.expressions import INFIX, SCALAR, StatementWriter, depends_on, needs_scalar
from rushlight.inductor.codegen.cpp.kernels import OPERATIONS_PER_ELEMENT, Kernel, KernelWriter, LoopKernel, for_rows, indented
from rushlight.inductor.codegen.cpp.sorted_rows import SortKernel
from rushlight.inductor.codegen.cpp.types import literal, size_operand, size_text
from rushlight.inductor.ir import Buffer, Call, ComputedBuffer, Value, substitute, walk
from rushlight.inductor.ordered_loops import Position, Scan, Scatter, Sort
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import as_size, product, quotient, rounded_up, stride_along

MIN_PARTS = 8  # threads share the outer points only if there are at least this many
MIN_WIDE_ROW = 32  # rows of at least this many points are enough work to divide target positions among threads
MAX_SERIAL_POINTS = 4096  # for at most this many points, one thread is faster than synchronizing several
CHEAP = {*INFIX, "cast", "neg", "abs", "relu", "maximum", "minimum"}
OWN = "return (unsigned long)(place0 - first_place) < (unsigned long)(end_place - first_place);"
BLOCK = 64  # contiguous results per work item
COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}
COMBINE_BOOLEANS = {"sum": "logical_or", "prod": "logical_and", "max": "logical_or", "min": "logical_and"}


def ordered_kernel(group: Group, buffers: dict[str, Buffer], in_place: bool) -> KernelWriter:
    """Return the writer for a group of a scatter, scan or sort. `in_place`: the scatter writes directly into its base's
    memory."""
    kinds = {Scatter: ScatterIntoBase if in_place else ScatterKernel, Scan: ScanKernel, Sort: SortKernel}
    return kinds[type(group.members[0].data)](group, buffers)


class ScatterKernel(LoopKernel):
    """Writes a scatter. Its base is a loop like any other."""

    def __init__(self, group: Group, buffers: dict[str, Buffer]):
        member = group.members[0]
        self.loop: Scatter = member.data
        base = ComputedBuffer(member.name, member.layout, member.lines, data=self.loop.base)
        super().__init__(Group([base], group.order, member.layout.numel, None, {member.name}), buffers)
        self.name = member.name
        self.last = self.loop.variables[-1] if self.loop.variables else Var("none", 1)

    def write(self) -> Kernel:
        kernel = self._write_base()
        for value in self.loop.values():
            self.note_status(value)
        kernel.uses_status = kernel.uses_status or bool(self.loop.positions)
        kernel.body += self._write_points()
        kernel.work = as_size(kernel.work + self.loop.numel * OPERATIONS_PER_ELEMENT)
        return kernel

    def _write_base(self) -> Kernel:
        """Return the loop that writes the base."""
        return super().write()

    def _write_points(self) -> list[str]:
        """Return the loops over all points."""
        variables = list(self.loop.variables)
        inner = variables.pop() if self._can_vectorize() else None
        shared = 0
        while shared < len(variables) and variables[shared] in self.loop.apart:
            shared += 1
        parts = product(variable.extent for variable in variables[:shared])
        looked_up = bool(self.loop.positions)
        few = shared == 0 or (isinstance(parts, int) and parts < MIN_PARTS)
        alone = isinstance(self.loop.numel, int) and self.loop.numel <= MAX_SERIAL_POINTS
        by_place = looked_up and few and not alone and self._is_much_work(inner)
        lines = self._read_positions() + self._write_inner_loop(inner)
        if by_place:
            lines = self._restrict_to_own_points(variables, lines)
        for variable in reversed(variables):
            head = f"for (long {variable} = 0; {variable} < {size_text(variable.extent)}; ++{variable}) {{"
            lines = [head, *indented(lines), "}"]
        if alone or not (by_place or shared):
            return ["for ([[maybe_unused]] const long only : rl::shared(1L)) {", *indented(lines), "}"]
        if not by_place:
            collapse = f" collapse({shared})" if shared > 1 else ""
            return [f"#pragma omp for{collapse} schedule(static)", *lines]
        return [*self._declare_own_range(), *lines, "rl::barrier();"]

    def _can_vectorize(self) -> bool:
        """Return whether points along the last variable are contiguous and can be vectorized."""
        last, loop = self.last, self.loop
        if last not in loop.apart or stride_along(loop.place, last) != 1 or needs_scalar(loop.body, last):
            return False
        return not any(depends_on(position.value, last) for position in loop.positions)

    def _is_much_work(self, inner: Var | None) -> bool:
        """Return whether a point, or a row of points, is more work than deciding which thread owns it. Every thread makes this
        decision for all points."""
        if inner is not None and (not isinstance(inner.extent, int) or inner.extent >= MIN_WIDE_ROW):
            return True
        return any(isinstance(node, Call) and node.name not in CHEAP for node in walk(self.loop.body))

    def _restrict_to_own_points(self, variables: list[Var], lines: list[str]) -> list[str]:
        """Restrict `lines` to points whose target positions belong to the thread. Removes from `variables` those of the loops
        that this writes: the innermost loop, and outer loops of known extents, which together count as one loop."""
        taken: list[Var] = []
        while variables and (not taken or isinstance(variables[-1].extent, int)):
            taken.insert(0, variables.pop())
        extents = [variable.extent for variable in taken]
        point, unpack = Var("point", product(extents)), []
        if len(taken) == 1:
            point = taken[0]
        else:
            positions = zip(taken, unflatten_index(point, extents), strict=True)
            unpack = [f"const long {variable} = {to_cpp(index)};" for variable, index in positions]
        return [
            f"rl::for_own({size_text(point.extent)}, [&](long {point}) {{",
            *indented([*unpack, *self._read_positions(), OWN]),
            f"}}, [&](long {point}) {{",
            *indented([*unpack, *lines]),
            "});",
        ]

    def _declare_own_range(self) -> list[str]:
        size = size_operand(self.loop.positions[0].size)
        return [
            f"const long first_place = {size} * rl::thread_index() / rl::thread_count();",
            f"const long end_place = {size} * (rl::thread_index() + 1) / rl::thread_count();",
        ]

    def _read_positions(self) -> list[str]:
        """Read and check the coordinates that are loaded from memory."""
        writer = StatementWriter(self.last, self.pointer, self.element_type, self.stream, lane=SCALAR, prefix="index")
        lines: list[str] = []
        for number, position in enumerate(self.loop.positions):
            place = writer.write(position.value)
            lines += [*writer.lines, _check_index(number, position, place)]
            writer.lines = []
        return lines

    def _write_inner_loop(self, inner: Var | None) -> list[str]:
        lane = SCALAR if inner is None else "lane"
        writer = StatementWriter(self.last, self.pointer, self.element_type, self.stream, lane=lane)
        value, loop = writer.write(self.loop.body), self.loop
        known = {position.variable: Var(f"place{number}", position.size) for number, position in enumerate(loop.positions)}
        target = f"{self.pointer(self.name, True)} + {to_cpp(loop.place.substitute(known))}"
        if loop.mode != "store":
            value = self._combine_values(f"{lane}.load({target})", value)
        lines = [*writer.lines, f"{lane}.store({target}, {value});"]
        if inner is None:
            return lines
        return [f"rl::for_each({size_text(inner.extent)}, [&](auto lane, long {inner}) {{", *indented(lines), "});"]

    def _combine_values(self, present: str, value: str) -> str:
        kind = self.loop.dtype
        name = (COMBINE_BOOLEANS if kind is bool_ else COMBINE)[self.loop.mode]
        if name in INFIX and kind.is_floating_point:
            return f"{present} {INFIX[name]} {value}"
        return f"rl::{name}({present}, {value})"


class ScatterIntoBase(ScatterKernel):
    """Writes a scatter into memory that already contains its base."""

    def _write_base(self) -> Kernel:
        return self.kernel

    def _write_inner_loop(self, inner: Var | None) -> list[str]:
        """Store nothing after an index error, because the checked index is then a substitute."""
        lines = super()._write_inner_loop(inner)
        if not self.loop.positions:
            return lines
        return ["if (__atomic_load_n(status, __ATOMIC_RELAXED) == 0) {", *indented(lines), "}"]


def _check_index(number: int, position: Position, value: str) -> str:
    wrap = "true" if position.wrap else "false"
    return f"const long place{number} = rl::checked_index<{wrap}>({value}, {size_text(position.size)}, status);"


class ScanKernel(KernelWriter):
    """Writes a scan: x counts the outer dimensions' points, r the steps along its dimension, c the inner dimensions' points."""

    def __init__(self, group: Group, buffers: dict[str, Buffer]):
        super().__init__(group, buffers)
        self.member: Buffer = group.members[0]
        loop = self.loop = self.member.data
        assert isinstance(loop, Scan)
        outer, inner = loop.ranges[: loop.dim], loop.ranges[loop.dim + 1 :]
        self.width = product(inner)
        self.x, self.r, self.c = Var("x", product(outer)), Var("r", loop.ranges[loop.dim]), Var("c", self.width)
        positions: list[Expr] = [*unflatten_index(self.x, outer), self.r, *unflatten_index(self.c, inner)]
        self.body: Value = substitute(loop.body, dict(zip(loop.variables, positions, strict=True)))
        self.note_status(self.body)

    def write(self) -> Kernel:
        """Return the kernel."""
        self.kernel.body = list(self._rows() if self.width == 1 else self._blocks())
        self.kernel.work = as_size(self.loop.numel * OPERATIONS_PER_ELEMENT)
        self.kernel.header = "scan"
        return self.kernel

    def _rows(self) -> list[str]:
        return for_rows(self.x.extent, ["[[maybe_unused]] constexpr long c = 0;", "const rl::scalar_lane lane;", *self._walk()])

    def _blocks(self) -> Iterator[str]:
        """Write runs of contiguous results, vectorized."""
        blocks = quotient(rounded_up(self.width, BLOCK), BLOCK)
        width, number = size_text(self.width), size_text(as_size(self.x.extent * blocks))
        yield f"for (const long block : rl::shared({number})) {{"
        yield f"  [[maybe_unused]] const long x = block / {size_operand(blocks)};"
        yield f"  const long first = block % {size_operand(blocks)} * {BLOCK}L;"
        yield f"  const long count = first + {BLOCK}L < {width} ? {BLOCK}L : {width} - first;"
        if needs_scalar(self.body, self.c):
            yield "  for (long i = 0; i < count; ++i) {"
            yield "    const rl::scalar_lane lane;"
        else:
            yield "  rl::for_each(count, [&](auto lane, long i) {"
        yield from indented(["const long c = first + i;", *self._walk()], 2)
        yield "  }" if needs_scalar(self.body, self.c) else "  });"
        yield "}"

    def _walk(self) -> list[str]:
        """Return the loop along the scanned dimension."""
        writer = StatementWriter(self.c, self.pointer, self.element_type, self.stream)
        value, kind = writer.write(self.body), self.loop.body.dtype
        at = ", lane.broadcast((int64_t)r)" if self.loop.scan_type in ("argmax", "argmin") else ""
        out = self.pointer(self.member.name, True)
        index = to_cpp((self.x * self.r.extent + self.r) * self.width + self.c)
        sample = f"decltype(lane.broadcast({literal(0, kind)}))"
        return [
            f"rl::scan<rl::{self.loop.scan_type}, {sample}> total;",
            f"for (long r = 0; r < {size_text(self.r.extent)}; ++r) {{",
            *indented(writer.lines),
            f"  lane.store({out} + {index}, total.add({value}{at}));",
            "}",
        ]
