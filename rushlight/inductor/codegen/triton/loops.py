"""Groups of loops as Triton kernels: elementwise groups, and rows with reductions.

An elementwise kernel's programs take blocks of elements. A row kernel's programs take tiles of rows and columns. If a row fits,
one tile holds all its columns, and values stay in registers from the reductions to what uses them ("persistent"). Else the
program passes over the columns in a loop, once for each step of reductions that depend on each other, and computes elementwise
values again in each pass.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.algebra import Expr, Var, flatten_index, unflatten_index
from rushlight.core.dtype import bool_, dtype
from rushlight.inductor.codegen.passes import assign_passes
from rushlight.inductor.codegen.triton.expressions import StatementWriter, Term, operand_text
from rushlight.inductor.codegen.triton.kernels import (
    Choice,
    Launch,
    LaunchWriter,
    indented,
    index_text,
    program_text,
    range_text,
)
from rushlight.inductor.codegen.triton.types import (
    compute_type,
    greatest_value,
    least_value,
    literal,
    size_text,
)
from rushlight.inductor.ir import Buffer, ComputedBuffer, Load, Reduction, substitute, walk
from rushlight.inductor.scheduler import Group, body_in_domain, element_index, is_row_value, row_variables
from rushlight.inductor.sizes import evaluate, product, row_major, stride_along

BLOCKS = (1024, 512, 256, 128)  # elements of a program; the first that keeps MIN_PROGRAMS busy
WARP_ELEMENTS = 256  # elements of a warp: a thread's eight are one or two loads of 16 bytes
MIN_PROGRAMS = 256
MIN_SIDE = 16  # shorter dimensions are not worth tiles of their own
MAX_HELD = 32768  # elements of a program's rows that are held in registers
MAX_PERSISTENT = 8192  # columns of a row that is held in registers
TILE = 2048  # elements of a tile in a loop over columns
LONG_ROW = 32768  # columns of rows of which few fit in the cache from one pass to the next
LONG_TILE = 8192  # elements of their tiles: two programs fill a multiprocessor
MIN_ROWS_ACROSS = 32  # rows of a tile whose memory is contiguous along the rows
RUN = 8  # consecutive elements that are worth reading together


def next_power(number: int) -> int:
    """Return the least power of two that is not smaller."""
    return 1 << max(number - 1, 0).bit_length()


class ElementKernel(LaunchWriter):
    """Writes a group of elementwise loops. With `any_block`, blocks need not divide the elements."""

    def __init__(
        self, group: Group, buffers: dict[str, Buffer], hints: dict[Var, int], kind: str = "pointwise", any_block: bool = False
    ):
        super().__init__(kind, group, buffers, hints)
        self._any_block = any_block

    def write(self) -> Launch:
        """Return the launch."""
        turned = self._turned_dimension()
        writer = self._write_flat() if turned is None else self._write_tiles(turned)
        if writer.unfused:
            self.launch.options["enable_fp_fusion"] = False
        return self.finish()

    def _write_flat(self) -> StatementWriter:
        """Write programs that take consecutive elements."""
        numel, x = self.group.numel, Var("x", self.group.numel)
        kind = self.index_type()
        self.launch.choice, self.launch.candidates = element_choices(evaluate(numel, self.hints))
        mask = "" if self.launch.divides(numel, "XBLOCK") and not self._any_block else "x_mask"
        writer = self.writer({"x": mask})
        self._write_members(writer, x)
        self.launch.body = [
            f"x = {range_text(f'{program_text(kind)} * XBLOCK', 'XBLOCK', kind)}",
            *([f"x_mask = x < {size_text(numel)}"] if mask else []),
            *writer.lines,
        ]
        self.launch.grid = (((numel, "XBLOCK"),),)
        return writer

    def _turned_dimension(self) -> int | None:
        """Return the dimension along which a load is contiguous in memory, if that is not the last one, as in transposes."""
        loop = max(self.group.members, key=lambda member: len(member.data.ranges)).data
        if len(loop.ranges) < 2 or not all(isinstance(size, int) for size in loop.ranges) or loop.ranges[-1] < MIN_SIDE:
            return None
        for node in walk(loop.body):
            if isinstance(node, Load) and stride_along(node.index, loop.variables[-1]) not in (0, 1, None):
                for dim, variable in enumerate(loop.variables[:-1]):
                    if loop.ranges[dim] >= MIN_SIDE and stride_along(node.index, variable) == 1:
                        return dim
        return None

    def _write_tiles(self, turned: int) -> StatementWriter:
        """Write programs that take tiles along a dimension and the others, so that loads along either are contiguous."""
        ranges = max(self.group.members, key=lambda member: len(member.data.ranges)).data.ranges
        others = [*ranges[:turned], *ranges[turned + 1 :]]
        x, y = Var("x", product(others)), Var("y", ranges[turned])
        places = unflatten_index(x, others)
        places.insert(turned, y)
        kind = self.index_type()
        sides = ((32, 32), (64, 32), (32, 64), (64, 64))
        made = [Choice({"XBLOCK": height, "YBLOCK": width}, warps=4 if height * width < 4096 else 8) for height, width in sides]
        self.launch.choice, self.launch.candidates = made[0], made
        masks = {axis.name: "" if self.launch.divides(axis.extent, block) else f"{axis.name}_mask"
                 for axis, block in ((x, "XBLOCK"), (y, "YBLOCK"))}  # fmt: skip
        writer = self.writer(masks)
        self._write_members(writer, flatten_index(places, row_major(ranges)))
        program = program_text(kind)
        self.launch.body = [
            f"y_tiles = tl.cdiv({size_text(y.extent)}, YBLOCK)",
            f"x = {range_text(f'{program} // y_tiles * XBLOCK', 'XBLOCK', kind, '[:, None]')}",
            f"y = {range_text(f'{program} % y_tiles * YBLOCK', 'YBLOCK', kind, '[None, :]')}",
            *(f"{axis.name}_mask = {axis.name} < {size_text(axis.extent)}" for axis in (x, y) if masks[axis.name]),
            *writer.lines,
        ]
        self.launch.kind = "tiles"
        self.launch.grid = (((x.extent, "XBLOCK"), (y.extent, "YBLOCK")),)
        return writer

    def _write_members(self, writer: StatementWriter, element: Expr) -> None:
        """Write all members at an element, counted in row-major order."""
        for member in self.group.members:
            self.member, loop = member, member.data
            places = dict(zip(loop.variables, unflatten_index(element, loop.ranges), strict=True))
            result = writer.write(substitute(loop.body, places))
            if member.name in self.group.stored:
                writer.store(self.pointer(member.name, True), element, result)
            writer.local[member.name] = result


def element_choices(numel: int) -> tuple[Choice, list[Choice]]:
    """Return the default choice for an elementwise kernel, and all candidates."""
    block = next((block for block in BLOCKS if numel >= block * MIN_PROGRAMS), BLOCKS[-1])
    made = [Choice({"XBLOCK": size}, warps=min(max(size // WARP_ELEMENTS, 1), 8)) for size in (block, 2 * block, block // 2)]
    return made[0], made


class RowKernel(LaunchWriter):
    """Writes a group of loops over rows and columns."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]):
        rows, columns = group.domain
        super().__init__("row", group, buffers, hints)
        self.domain = group.domain
        self.x, self.r = row_variables(group.domain)
        self.bodies = {member.name: body_in_domain(member, group.domain) for member in group.members}
        self.values: dict[str, Term] = {}
        self.across = self._is_contiguous_across()
        limit = TILE // MIN_ROWS_ACROSS if self.across else max(MAX_PERSISTENT, MAX_HELD // max(self._held_rows(), 1))
        self.persistent = isinstance(columns, int) and next_power(columns) <= limit
        self.launch.kind = "row" if self.persistent else "rows_in_loops"

    def write(self) -> Launch:
        """Return the launch."""
        rows, columns = self.domain
        self.kind = self.index_type()
        self.launch.choice, self.launch.candidates = self._choices()
        whole = self.persistent and next_power(columns) == columns
        even = rows == 1 or self.launch.divides(rows, "XBLOCK")
        self.masks = {"x": "" if even else "x_mask", "r": "" if whole or self._divides_columns() else "r_mask"}
        head = [f"x = {range_text(f'{program_text(self.kind)} * XBLOCK', 'XBLOCK', self.kind, '[:, None]')}"]
        if self.masks["x"]:
            head.append(f"x_mask = x < {size_text(rows)}")
        self.writer_ = self.writer(self.masks)
        body = self._write_once() if self.persistent else self._write_passes()
        self.launch.body = [*head, *body]
        self.launch.grid = (((rows, "XBLOCK"),),)
        if self.writer_.unfused:
            self.launch.options["enable_fp_fusion"] = False
        return self.finish()

    def _choices(self) -> tuple[Choice, list[Choice]]:
        rows, columns = (evaluate(size, self.hints) for size in self.domain)
        tile = LONG_TILE if columns >= LONG_ROW and not self.across else TILE
        block = next_power(columns) if self.persistent else min(next_power(columns), tile)
        if self.across:
            height = min(next_power(rows), MIN_ROWS_ACROSS)
            block = block if self.persistent else min(block, TILE // height)
        else:
            height = min(next_power(rows), max(1, (TILE // 2) // block), MIN_ROWS_ACROSS)
        made = []
        for rows_each in dict.fromkeys((height, max(1, height // 2), 2 * height if rows > 1 else 1)):
            most = 32 if block == LONG_TILE and not self.persistent else 16
            warps = max(1, min(most, rows_each * block // 256)) if rows_each * block > 1024 else 4
            constants = {"XBLOCK": rows_each, "RBLOCK": block}
            made.append(Choice(constants, warps=next_power(warps), stages=1 if self.persistent else 2))
        if block == LONG_TILE and not self.persistent:
            made.append(Choice({"XBLOCK": 1, "RBLOCK": TILE}, warps=8, stages=2))
        return made[0], made

    def _held_rows(self) -> int:
        """Return how many buffers a program reads whole rows of."""
        loads = [node for body in self.bodies.values() for node in walk(body) if isinstance(node, Load)]
        varied = [load for load in loads if 0 not in (stride_along(load.index, self.r), stride_along(load.index, self.x))]
        return len({load.buffer for load in varied if load.buffer not in self.group.names})

    def _divides_columns(self) -> bool:
        """Return whether the blocks of a loop over columns divide them."""
        return not self.persistent and self.launch.divides(self.domain[1], "RBLOCK")

    def _is_contiguous_across(self) -> bool:
        """Return whether most loads are contiguous along the rows rather than along the columns."""
        along = across = 0
        for body in self.bodies.values():
            for node in walk(body):
                if isinstance(node, Load) and node.buffer not in self.group.names:
                    along += self._is_run(node.index, self.r)
                    across += self._is_run(node.index, self.x) and stride_along(node.index, self.r) not in (0, 1)
        return across > along

    def _is_run(self, index: Expr, variable: Var) -> bool:
        """Return whether the first steps of a variable read consecutive elements: its index may be split into several."""
        if stride_along(index, variable) == 1:
            return True
        start = {each: max(self.hints[each], 1) if each in self.hints else 0 for each in index.free_variables()}
        return index.evaluate(start | {variable: RUN}) - index.evaluate(start | {variable: 0}) == RUN

    # Whole rows

    def _columns(self, start: str = "") -> list[str]:
        """Return the lines that set the columns of a tile."""
        first = f"{start} + " if start else ""
        spread = "tl.arange(0, RBLOCK)[None, :]"
        text = index_text(spread, self.kind)
        mask = [f"r_mask = r < {size_text(self.domain[1])}"] if self.masks["r"] else []
        return [f"r = {first}{text}", *mask]

    def _write_once(self) -> list[str]:
        writer = self.writer_
        lines = self._columns()
        for member in self.group.members:
            self.member, value = member, writer.write(self.bodies[member.name])
            if isinstance(member.data, Reduction):
                value = self._reduce_tile(member, value)
            writer.local[member.name] = value
            self._store(member, value)
        return [*lines, *writer.lines]

    def _store(self, member: Buffer, value: Term) -> None:
        if member.name not in self.group.stored:
            return
        if is_row_value(member, self.domain):
            saved, self.writer_.masks = self.writer_.masks, {"x": self.masks["x"]}
            self.writer_.store(self.pointer(member.name, True), self.x, value)
            self.writer_.masks = saved
        else:
            self.writer_.store(self.pointer(member.name, True), element_index(self.domain), value)

    def _tile_text(self, term: Term, kind: dtype) -> str:
        """Return a value's text with an extent along rows and columns."""
        text = self.writer_.typed(term, kind)
        return text if term.axes == {"x", "r"} else f"tl.broadcast_to({text}, [XBLOCK, RBLOCK])"

    def _masked_tile(self, term: Term, kind: dtype, identity: str) -> str:
        text = self._tile_text(term, kind)
        return f"tl.where(r_mask, {text}, {identity})" if self.masks["r"] else text

    def _reduce_tile(self, member: ComputedBuffer, value: Term) -> Term:
        """Reduce a value along the columns of the tile."""
        reduction = REDUCTIONS[member.data.reduction_type]
        kind = member.data.body.dtype
        tile = self.writer_.bind(self._masked_tile(value, kind, reduction.identity(kind)), "xr")
        places = None
        if reduction.takes_places:
            at = f"tl.where(r_mask, r.to(tl.int64), {PAST_ALL})" if self.masks["r"] else "r.to(tl.int64)"
            places = self.writer_.bind(f"tl.broadcast_to({at}, [XBLOCK, RBLOCK])", "xr")
        return self._finish(reduction, kind, tile, places)

    def _finish(self, reduction: Kind, kind: dtype, tile: Term, places: Term | None) -> Term:
        text = reduction.finish(self.writer_, kind, tile, places)
        return self.writer_.bind(f"{operand_text(text)}[:, None]", "x")

    # Loops over columns

    def _write_passes(self) -> list[str]:
        members = self.group.members
        passes, after = assign_passes(members, lambda member: is_row_value(member, self.domain))
        lines = self._write_row_values(-1, after)
        for number in range(max([*passes.values(), *after.values()], default=0) + 1):
            lines += self._write_pass(number, passes, after)
            lines += self._write_row_values(number, after)
        return lines

    def _write_pass(self, number: int, passes: dict[str, int], after: dict[str, int]) -> list[str]:
        members, writer = self.group.members, self.writer_
        reductions = [m for m in members if isinstance(m.data, Reduction) and after.get(m.name) == number]
        elements = [m for m in members if passes.get(m.name) == number and m.name in self.group.stored]
        if not reductions and not elements:
            return []
        head: list[str] = []
        writer.begin()
        writer.local = _Recomputing(self, dict(self.values))
        accumulators = {}
        for member in reductions:
            accumulators[member.name] = self._declare(member, head)
        for member in [m for m in members if m in reductions or m in elements]:
            self.member, value = member, writer.write(self.bodies[member.name])
            if member in reductions:
                self._accumulate(member, accumulators[member.name], value)
            else:
                writer.local[member.name] = value
                self._store(member, value)
        loop = [f"for start in range(0, {size_text(self.domain[1])}, RBLOCK):"]
        loop += indented([*self._columns("start"), *writer.lines])
        writer.begin()
        for member in reductions:
            self.values[member.name] = self._finish_loop(member, accumulators[member.name])
            self._store(member, self.values[member.name])
        return [*head, *loop, *writer.lines]

    def _declare(self, member: ComputedBuffer, head: list[str]) -> tuple[Term, Term | None]:
        """Declare the accumulators of a reduction: a tile, and one of places for an arg reduction."""
        loop, number = member.data, len(self.values) + len(head)
        reduction, kind = REDUCTIONS[loop.reduction_type], loop.body.dtype
        name = f"total{number}"
        head.append(f"{name} = tl.full([XBLOCK, RBLOCK], {reduction.identity(kind)}, {reduction.held_type(kind)})")
        if not reduction.takes_places:
            return Term(name, frozenset("xr")), None
        head.append(f"{name}_at = tl.full([XBLOCK, RBLOCK], {PAST_ALL}, tl.int64)")
        return Term(name, frozenset("xr")), Term(f"{name}_at", frozenset("xr"))

    def _accumulate(self, member: ComputedBuffer, accumulator: tuple[Term, Term | None], value: Term) -> None:
        reduction, kind = REDUCTIONS[member.data.reduction_type], member.data.body.dtype
        total, places = accumulator
        tile = self._tile_text(value, kind)
        active = "r_mask" if self.masks["r"] else ""
        self.writer_.lines += reduction.accumulate(total.text, "" if places is None else places.text, tile, active)

    def _finish_loop(self, member: ComputedBuffer, accumulator: tuple[Term, Term | None]) -> Term:
        reduction, kind = REDUCTIONS[member.data.reduction_type], member.data.body.dtype
        return self._finish(reduction, kind, *accumulator)

    def _write_row_values(self, number: int, after: dict[str, int]) -> list[str]:
        writer = self.writer_
        members = [m for m in self.group.members if after.get(m.name) == number and not isinstance(m.data, Reduction)]
        if not members:
            return []
        writer.begin()
        writer.local = dict(self.values)
        for member in members:
            value = writer.write(self.bodies[member.name])
            writer.local[member.name] = self.values[member.name] = value
            self._store(member, value)
        return writer.lines


class _Recomputing(dict):
    """Terms of members; an elementwise member that the current pass did not compute is written when it is first read."""

    def __init__(self, kernel: RowKernel, known: dict[str, Term]):
        super().__init__(known)
        self.kernel = kernel

    def get(self, name: str, default: Term | None = None) -> Term | None:
        if name not in self and name in self.kernel.bodies:
            self[name] = self.kernel.writer_.write(self.kernel.bodies[name])
        return super().get(name, default)


# Reductions

PAST_ALL = 1 << 62  # a place after all others


class Kind:
    """A kind of reduction: how a tile is reduced along its columns, and how tiles are combined in a loop."""

    takes_places = False

    def __init__(self, start: Callable[[dtype], object], combine: str, reduce: str):
        self._start = start
        self._combine = combine
        self._reduce = reduce

    def identity(self, kind: dtype) -> str:
        """Return the value that does not change a result."""
        return literal(self._start(kind), kind)

    def held_type(self, kind: dtype) -> str:
        """Return the type of accumulators."""
        return compute_type(kind)

    def accumulate(self, total: str, places: str, tile: str, active: str) -> list[str]:
        """Return the lines that combine a tile with the accumulator, at points where `active` holds."""
        combined = self._combine.format(total, operand_text(tile))
        return [f"{total} = {f'tl.where({active}, {combined}, {total})' if active else combined}"]

    def finish(self, writer: StatementWriter, kind: dtype, tile: Term, places: Term | None) -> str:
        """Return the text of a tile's results."""
        return self._reduce.format(tile.text)


class Extremum(Kind):
    """The greatest or least value; NaN if there is one. Triton's own reductions leave NaN out."""

    def finish(self, writer: StatementWriter, kind: dtype, tile: Term, places: Term | None) -> str:
        name = self._combine.partition("(")[0]
        return f"tl.reduce({tile.text}, 1, {name})" if kind.is_floating_point else self._reduce.format(tile.text)


class Place(Kind):
    """The index of the first extremum, or of the first NaN."""

    takes_places = True

    def __init__(self, start: Callable[[dtype], object], better: str, reduce: str):
        super().__init__(start, better, reduce)

    def accumulate(self, total: str, places: str, tile: str, active: str) -> list[str]:
        lines = [f"{total}_new = {tile}"]
        wins = f"({total}_new {self._combine} {total}) | (({total}_new != {total}_new) & ({total} == {total}))"
        wins = f"{wins} | ({places} == {PAST_ALL})"
        lines.append(f"{total}_wins = {f'{active} & ({wins})' if active else wins}")
        return [
            *lines,
            f"{total} = tl.where({total}_wins, {total}_new, {total})",
            f"{places} = tl.where({total}_wins, r, {places})",
        ]

    def finish(self, writer: StatementWriter, kind: dtype, tile: Term, places: Term | None) -> str:
        numbers = writer.bind(f"tl.where({tile.text} == {tile.text}, {tile.text}, {self.identity(kind)})", tile.axes)
        best = writer.bind(f"{self._reduce.format(numbers.text)}[:, None]", "x")
        lost = writer.bind(f"tl.max(({tile.text} != {tile.text}).to(tl.int32), 1)[:, None]", "x")
        matches = f"tl.where({lost.text} != 0, {tile.text} != {tile.text}, {tile.text} == {best.text})"
        inside = writer.bind(matches, tile.axes)
        return f"tl.min(tl.where({inside.text}, {places.text}, {PAST_ALL}), 1)"


def _zero(kind: dtype) -> object:
    return False if kind is bool_ else 0


REDUCTIONS: dict[str, Kind] = {
    "sum": Kind(_zero, "{0} + {1}", "tl.sum({0}, 1)"),
    "prod": Kind(lambda kind: 1, "{0} * {1}", "tl.reduce({0}, 1, product_of)"),
    "max": Extremum(least_value, "larger({0}, {1})", "tl.max({0}, 1)"),
    "min": Extremum(greatest_value, "smaller({0}, {1})", "tl.min({0}, 1)"),
    "any": Kind(lambda kind: False, "{0} | {1}", "(tl.max({0}.to(tl.int32), 1) != 0)"),
    "all": Kind(lambda kind: True, "{0} & {1}", "(tl.min({0}.to(tl.int32), 1) != 0)"),
    "argmax": Place(least_value, ">", "tl.max({0}, 1)"),
    "argmin": Place(greatest_value, "<", "tl.min({0}, 1)"),
}
