"""Scatters and scans as Triton kernels, and the choice of kernels for ordered loops.

A scatter is two kernels: its base, unless that is in place already, and then the points, which combine with what is there by
atomic operations. So the order of floating-point sums, and which of several stores to one place wins, vary between runs. Points
of 8 and 16 bits are combined in memory of a wider type, and the results are copied. A scan walks
over blocks of its dimension and carries the last result along.
"""

from __future__ import annotations

from dataclasses import replace

from rushlight.core.algebra import Expr, Var, flatten_index, unflatten_index
from rushlight.core.dtype import bool_, dtype, int32
from rushlight.inductor.codegen.triton.expressions import StatementWriter, Term
from rushlight.inductor.codegen.triton.kernels import (
    Choice,
    Launch,
    LaunchWriter,
    indented,
    index_text,
    program_text,
    range_text,
)
from rushlight.inductor.codegen.triton.loops import ElementKernel, element_choices, next_power
from rushlight.inductor.codegen.triton.sorts import sort_launches
from rushlight.inductor.codegen.triton.types import (
    NoTritonForm,
    compute_type,
    greatest_value,
    least_value,
    literal,
    size_text,
)
from rushlight.inductor.ir import Buffer, ComputedBuffer, Load, Value, contiguous_layout, substitute
from rushlight.inductor.lowering.builder import cast
from rushlight.inductor.ordered_loops import Scan, Scatter
from rushlight.inductor.origins import origins_of
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import as_size, evaluate, product, row_major

ADDED = ("float32", "float64", "int32", "int64", "complex64", "complex128")  # types with an atomic addition
COMPARED = ("float32", "float64", "int32", "int64")  # types with an atomic maximum, minimum and exchange
WIDER = {"uint8": int32, "int8": int32, "int16": int32}
MAX_SCANNED = 1024  # steps of a scan in one tile


def ordered_launches(group: Group, buffers: dict[str, Buffer], hints: dict[Var, int], in_place: bool) -> list[Launch]:
    """Return the launches of a scatter, scan or sort. `in_place`: the scatter's target already holds its base."""
    member = group.members[0]
    if isinstance(member.data, Scatter):
        wider = WIDER.get(member.data.dtype.name)
        if wider is not None and member.data.mode != "store":
            return _launches_in_wider_words(group, buffers, hints, wider)
        base = [] if in_place else [_base_of(group, buffers, hints)]
        return [*base, ScatterKernel(group, buffers, hints).write()]
    if isinstance(member.data, Scan):
        return [ScanKernel(group, buffers, hints).write()]
    return sort_launches(group, buffers, hints)


def _launches_in_wider_words(
    group: Group, buffers: dict[str, Buffer], hints: dict[Var, int], kind: dtype
) -> list[Launch]:  # fmt: skip
    """Return the launches of a scatter that combines points in scratch memory of a wider type, and copies the results."""
    member, loop = group.members[0], group.members[0].data
    base, name = loop.base, f"wide_{member.name}"
    start = replace(base, dtype=kind, body=cast(base.body, kind))
    points = replace(loop, dtype=kind, base=start, body=cast(loop.body, kind))
    wide = ComputedBuffer(name, contiguous_layout(kind, base.ranges), member.lines, origins_of(member), data=points)
    result = Load(kind, name, flatten_index(base.variables, row_major(base.ranges)))
    end = replace(base, body=cast(result, loop.dtype))
    narrow = ComputedBuffer(member.name, member.layout, member.lines, origins_of(member), data=end)
    known, order = {**buffers, name: wide}, group.order
    made = ordered_launches(Group([wide], order, loop.numel, None, {name}), known, hints, False)
    last = Group([narrow], order, base.numel, None, {member.name})
    made.append(ElementKernel(last, known, hints, "narrow").write())
    for launch in made:
        launch.scratch[name] = as_size(base.numel * kind.itemsize)
    return made


def _base_of(group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]) -> Launch:
    """Return the launch that writes a scatter's base."""
    member = group.members[0]
    base = ComputedBuffer(member.name, member.layout, member.lines, origins_of(member), data=member.data.base)
    return ElementKernel(Group([base], group.order, member.layout.numel, None, {member.name}), buffers, hints, "base").write()


class ScatterKernel(LaunchWriter):
    """Writes the points of a scatter."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]):
        super().__init__("scatter", group, buffers, hints)
        self.loop: Scatter = group.members[0].data

    def write(self) -> Launch:
        """Return the launch."""
        loop, x = self.loop, Var("x", self.loop.numel)
        kind = self.index_type(loop.numel)
        writer = self.writer({"x": "x_mask"})
        variables: dict[Var, Expr] = dict(zip(loop.variables, unflatten_index(x, loop.ranges), strict=True))
        known = dict(variables)
        for position in loop.positions:
            value = substitute(position.value, variables)
            found = writer.check_index(writer.write(value), value.dtype, size_text(position.size), position.wrap)
            writer.name_axes(found.text, found.axes)
            known[position.variable] = Var(found.text, position.size)
        value = writer.write(substitute(loop.body, variables))
        self._combine(writer, writer.index(loop.place.substitute(known)), value)
        self.launch.body = [
            f"x = {range_text(f'{program_text(kind)} * XBLOCK', 'XBLOCK', kind)}",
            f"x_mask = x < {size_text(loop.numel)}",
            *writer.lines,
        ]
        self.launch.choice, self.launch.candidates = element_choices(evaluate(loop.numel, self.hints))
        self.launch.grid = (((loop.numel, "XBLOCK"),),)
        return self.finish()

    def _combine(self, writer: StatementWriter, place: Term, value: Term) -> None:
        """Write the store of a point's value, or its combination with what is there."""
        kind, mode = self.loop.dtype, self.loop.mode
        target = writer.place(self.pointer(self.member.name, True), place, "x")
        text = f"tl.broadcast_to({writer.typed(value, kind)}, [XBLOCK])"
        valid = " & ".join(["x_mask", *writer.checked])
        if kind is bool_ and mode != "store":
            wanted = mode in ("sum", "max")
            writer.lines.append(f"tl.store({target}, {wanted}, {valid} & ({text} == {wanted}))")
        elif mode == "store":
            writer.lines.append(f"tl.store({target}, {text}, {valid})")
        elif mode == "sum" and kind.name in ADDED:
            writer.lines.append(f'tl.atomic_add({target}, {text}, {valid}, sem="relaxed")')
        elif mode in ("max", "min") and kind.name in COMPARED:
            writer.lines += self._atomic_extremum(writer, target, text, valid)
        elif mode == "prod" and kind.name in COMPARED:
            inside = writer.bind(f"tl.where({valid}, {place.text}, 0)", "x")
            target = writer.place(self.pointer(self.member.name, True), inside, "x")
            writer.lines.append(f"atomic_product({target}, {text}, {valid})")
        else:
            raise NoTritonForm(self.origins(), f"there is no atomic {mode} of {kind}")

    def _atomic_extremum(self, writer: StatementWriter, target: str, text: str, valid: str) -> list[str]:
        """Write an atomic maximum or minimum. A NaN whose bits are beyond all numbers stays once it is stored."""
        mode, kind = self.loop.mode, self.loop.dtype
        lines = [f"given = {text}", f"valid = {valid}"]
        if not kind.is_floating_point:
            return [*lines, f'tl.atomic_{mode}({target}, given, valid, sem="relaxed")']
        sign = "1.0" if mode == "max" else "-1.0"
        numbers = (f"tl.full([XBLOCK], {number}, {compute_type(kind)})" for number in ('float("nan")', sign))
        nan = f"copysign({', '.join(numbers)})"
        return [
            *lines,
            f'tl.atomic_{mode}({target}, given, valid & (given == given), sem="relaxed")',
            f"tl.store({target}, {nan}, valid & (given != given))",
        ]


class ScanKernel(LaunchWriter):
    """Writes a scan: x counts rows, which are the other dimensions' points, r the steps along its dimension."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]):
        super().__init__("scan", group, buffers, hints)
        loop = self.loop = self.member.data
        outer, inner = loop.ranges[: loop.dim], loop.ranges[loop.dim + 1 :]
        self.width, self.steps = product(inner), loop.ranges[loop.dim]
        self.x, self.r = Var("x", product((*outer, *inner))), Var("r", self.steps)
        first, second = unflatten_index(self.x, (product(outer), self.width))
        places = [*unflatten_index(first, outer), self.r, *unflatten_index(second, inner)]
        self.body: Value = substitute(loop.body, dict(zip(loop.variables, places, strict=True)))
        self.index = (first * self.steps + self.r) * self.width + second

    def write(self) -> Launch:
        """Return the launch."""
        rows, steps = (evaluate(size, self.hints) for size in (self.x.extent, self.steps))
        kind = self.index_type(self.loop.numel)
        block = min(next_power(steps), MAX_SCANNED)
        whole = isinstance(self.steps, int) and self.steps <= MAX_SCANNED
        writer = self.writer({"x": "x_mask", "r": "r_mask"})
        value = writer.write(self.body)
        body, element = self.loop.body.dtype, compute_type(self.loop.body.dtype)
        tile = writer.bind(f"tl.broadcast_to({writer.typed(value, body)}, [XBLOCK, RBLOCK])", "xr")
        result, carries = self._scan(writer, tile, whole)
        writer.store(self.pointer(self.member.name, True), self.index, result)
        lines = [f"x = {range_text(f'{program_text(kind)} * XBLOCK', 'XBLOCK', kind, '[:, None]')}"]
        lines.append(f"x_mask = x < {size_text(self.x.extent)}")
        columns = index_text("tl.arange(0, RBLOCK)[None, :]", kind)
        mask = f"r_mask = r < {size_text(self.steps)}"
        if whole:
            self.launch.body = [*lines, f"r = {columns}", mask, *writer.lines]
        else:
            lines += [f"{name} = tl.full([XBLOCK, 1], {start}, {held or element})" for name, start, held in carries]
            loop = [f"r = start + {columns}", mask, *writer.lines]
            self.launch.body = [*lines, f"for start in range(0, {size_text(self.steps)}, RBLOCK):", *indented(loop)]
        height = min(next_power(rows), max(1, MAX_SCANNED // block), 16)
        self.launch.choice = Choice({"XBLOCK": height, "RBLOCK": block}, warps=4)
        self.launch.candidates = [self.launch.choice]
        self.launch.grid = (((self.x.extent, "XBLOCK"),),)
        return self.finish()

    def _scan(self, writer: StatementWriter, tile: Term, whole: bool) -> tuple[Term, list[tuple[str, str, str]]]:
        """Write the scan of a tile; returns its result, and the carried values: name, start, type."""
        scan, kind = self.loop.scan_type, self.loop.body.dtype
        if scan in ("argmax", "argmin"):
            return self._scan_places(writer, tile, whole)
        text, combine, start = _scan_form(scan, kind)
        found = writer.bind(text.format(tile.text), "xr")
        if whole:
            return found, []
        result = writer.bind(combine.format("carry", found.text), "xr")
        writer.lines.append(f"carry = {_last_of(result.text)}")
        return result, [("carry", start, "")]

    def _scan_places(self, writer: StatementWriter, tile: Term, whole: bool) -> tuple[Term, list[tuple[str, str, str]]]:
        name, kind = f"later_{self.loop.scan_type[3:]}imum", self.loop.body.dtype
        at = "tl.broadcast_to(r, [XBLOCK, RBLOCK]).to(tl.int64)"
        writer.lines.append(f"best, place = tl.associative_scan(({tile.text}, {at}), 1, {name})")
        place = Term("place", frozenset("xr"))
        if whole:
            return place, []
        writer.lines.append(f"best, place = {name}(carry, carried_place, best, place)")
        writer.lines += [f"carry = {_last_of('best')}", f"carried_place = {_last_of('place')}"]
        start = least_value(kind) if self.loop.scan_type == "argmax" else greatest_value(kind)
        return place, [("carry", literal(start, kind), ""), ("carried_place", "0", "tl.int64")]


def _scan_form(scan: str, kind: dtype) -> tuple[str, str, str]:
    """Return the text of a tile's scan, of the combination with what came before, and of the start."""
    if scan == "sum":
        return "tl.cumsum({0}, 1)", "{0} + {1}", literal(0, kind)
    if scan == "prod":
        return "tl.cumprod({0}, 1)", "{0} * {1}", literal(1, kind)
    name = {"max": "larger", "min": "smaller", "logsumexp": "log_sum_exp"}[scan]
    start = greatest_value(kind) if scan == "min" else least_value(kind)
    return f"tl.associative_scan({{0}}, 1, {name})", f"{name}({{0}}, {{1}})", literal(start, kind)


def _last_of(text: str) -> str:
    """Return the text of a tile's last column."""
    return f"tl.sum(tl.where(tl.arange(0, RBLOCK)[None, :] == RBLOCK - 1, {text}, 0), 1)[:, None]"
