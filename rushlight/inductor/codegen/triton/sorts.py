"""Sorts as Triton kernels.

A row that fits in a tile is sorted by one kernel. Longer rows are sorted in chunks, and then sorted runs are merged two by two:
each element looks up by halving how many elements of the other run come before it, which gives its place among both. A last
kernel reads the values at the places that were found.
"""

from __future__ import annotations

from rushlight.core.algebra import Expr, Var, unflatten_index
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
from rushlight.inductor.codegen.triton.loops import element_choices, next_power
from rushlight.inductor.codegen.triton.types import LIMIT, NoTritonForm, size_text
from rushlight.inductor.ir import Buffer, Value, substitute
from rushlight.inductor.ordered_loops import Sort
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import Size, as_size, evaluate, product

MAX_SORTED = 4096  # values of a row whose sort takes one tile
MAX_RANKED = 1024  # values of a row of 64-bit values, each of which is compared with all others
SORT_TILE = 1024
CHUNK, RANKED_CHUNK = 2048, 512  # values of a chunk of a longer row; the latter of 64-bit values
GREATEST_KEY = 2147483647


def sort_launches(group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]) -> list[Launch]:
    """Return the launches of a sort."""
    loop: Sort = group.members[0].data
    length = loop.ranges[-1]
    if isinstance(length, int) and length <= (MAX_RANKED if loop.dtype.itemsize == 8 else MAX_SORTED):
        return [SortKernel(group, buffers, hints).write()]
    first = SortedChunks(group, buffers, hints)
    launches, run, source = [first.write()], first.chunk, 0
    while run < length:
        launches.append(MergedRuns(group, buffers, hints).write(run, source))
        run, source = 2 * run, 1 - source
    return [*launches, SortedValues(group, buffers, hints).write(source)]


class RowSort(LaunchWriter):
    """Base of sorts: x counts rows, r the values of a row."""

    def __init__(self, kind: str, group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]):
        super().__init__(kind, group, buffers, hints)
        loop: Sort = self.member.data
        self.loop = loop
        self.rows, self.length = product(loop.ranges[:-1]), loop.ranges[-1]
        self.x, self.r = Var("x", self.rows), Var("r", self.length)
        if not isinstance(self.length, int) or self.length >= LIMIT:
            raise NoTritonForm(self.origins(), f"rows of {self.length} values are sorted")
        self.is_wide = loop.dtype.itemsize == 8

    def body_at(self, row: Expr, place: Expr) -> Value:
        """Return the value at a place of a row."""
        loop = self.loop
        places = [*unflatten_index(row, loop.ranges[:-1]), place]
        return substitute(loop.body, dict(zip(loop.variables, places, strict=True)))

    def runs(self, number: int, prefix: str = "") -> tuple[str, str]:
        """Return the parameters for the keys and places of one of two sets of sorted runs."""
        count, name = as_size(self.rows * self.length), self.member.name
        itemsize = 8 if self.is_wide else 4
        keys = self.scratch(f"keys{number}_{name}", f"{prefix}keys_ptr", f"*i{8 * itemsize}", as_size(count * itemsize))
        return keys, self.scratch(f"places{number}_{name}", f"{prefix}places_ptr", "*i32", as_size(count * 4))


class SortKernel(RowSort):
    """Writes the sort of rows that fit in a tile, and the index that each result comes from."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]):
        super().__init__("sort", group, buffers, hints)

    def write(self) -> Launch:
        """Return the launch."""
        kind = self.index_type(self.loop.numel)
        writer = self.writer({"x": "x_mask", "r": "r_mask"})
        block = next_power(self.length)
        write = self._write_ranks if self.is_wide else self._write_keys
        write(writer)
        columns = index_text("tl.arange(0, RBLOCK)[None, :]", kind)
        self.launch.body = [
            f"x = {range_text(f'{program_text(kind)} * XBLOCK', 'XBLOCK', kind, '[:, None]')}",
            f"x_mask = x < {size_text(self.rows)}",
            f"r = {columns}", f"r_mask = r < {self.length}", *writer.lines,
        ]  # fmt: skip
        together = next_power(evaluate(self.rows, self.hints))
        height = 1 if write == self._write_ranks else min(max(1, SORT_TILE // block), together)
        self.launch.choice = Choice({"XBLOCK": height, "RBLOCK": block}, warps=4 if block <= SORT_TILE else 8)
        self.launch.candidates = [self.launch.choice]
        self.launch.grid = (((self.rows, "XBLOCK"),),)
        return self.finish()

    def _write_keys(self, writer: StatementWriter) -> None:
        """Sort 64-bit keys: the value above, the place below."""
        kind = self.loop.dtype
        value = writer.write(self.body_at(self.x, self.r))
        key = writer.bind(f"sorting_key(tl.broadcast_to({writer.typed(value, kind)}, [XBLOCK, RBLOCK]))", "xr")
        if self.loop.descending:
            key = writer.bind(f"~{key.text}", "xr")
        above = writer.bind(f"tl.where(r_mask, {key.text}, 2147483647).to(tl.int64) << 32", "xr")
        ordered = writer.bind(f"tl.sort({above.text} | r.to(tl.int64), 1)", "xr")
        place = writer.bind(f"{ordered.text} & 4294967295", "xr")
        writer.name_axes(place.text, "xr")
        kept = self.loop.kept
        if kept != self.length:
            writer.lines.append(f"r_mask = r < {size_text(kept)}")
        index = self.x * kept + self.r
        for member in self.group.members:
            if member.name in self.group.stored:
                found = place if member is not self.member else writer.write(self.body_at(self.x, Var(place.text, self.length)))
                writer.store(self.pointer(member.name, True), index, found)

    def _write_ranks(self, writer: StatementWriter) -> None:
        """Count for each value those that sort before it: that is its place among the results."""
        kind, other = self.loop.dtype, Var("other", self.length)
        value = writer.typed(writer.write(self.body_at(self.x, self.r)), kind)
        writer.lines.append(f"value = tl.broadcast_to({value}, [XBLOCK, RBLOCK])")
        writer.lines.append("rank = tl.zeros([XBLOCK, RBLOCK], tl.int64)")
        inner = self.writer({"x": "x_mask"}, "other_")
        inner.name_axes("other", ())
        found = operand_text(inner.typed(inner.write(self.body_at(self.x, other)), kind))
        before = f"sorts_before({found}, other, value, r, {self.loop.descending})"
        writer.lines.append(f"for other in range({self.length}):")
        writer.lines += indented([*inner.lines, f"rank += ({before}).to(tl.int64)"])
        writer.name_axes("rank", "xr")
        writer.lines.append(f"r_mask = r_mask & (rank < {size_text(self.loop.kept)})")
        index = self.x * self.loop.kept + Var("rank", self.length)
        terms = {self.member.name: Term("value", frozenset("xr"))}
        for member in self.group.members:
            if member.name in self.group.stored:
                place = Term("tl.broadcast_to(r, [XBLOCK, RBLOCK])", frozenset("xr"))
                writer.store(self.pointer(member.name, True), index, terms.get(member.name, place))


class SortedChunks(RowSort):
    """Writes the sort of each row's chunks."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]):
        super().__init__("sorted_chunks", group, buffers, hints)
        self.chunk = RANKED_CHUNK if self.is_wide else CHUNK

    def write(self) -> Launch:
        """Return the launch."""
        kind, chunks = self.index_type(self.loop.numel), -(-self.length // self.chunk)
        writer = self.writer({"r": "r_mask"})
        key = self._key(writer, self.r)
        keys, places = self.runs(0)
        lines = [
            f"program = {program_text(kind)}",
            f"x = program // {chunks}",
            f"start = program % {chunks} * CHUNK",
            f"r = {range_text('start', 'CHUNK', kind)}",
            f"r_mask = r < {self.length}",
            *writer.lines,
        ]
        lines += self._ranked(key) if self.is_wide else self._sorted(key)
        at = f"{self.length} * x + {'start + rank' if self.is_wide else 'r'}"
        lines += [f"tl.store({keys} + ({at}), key, r_mask)", f"tl.store({places} + ({at}), place.to(tl.int32), r_mask)"]
        self.launch.body = lines
        self.launch.choice = Choice({"CHUNK": self.chunk}, warps=8 if self.chunk > SORT_TILE else 4)
        self.launch.candidates = [self.launch.choice]
        self.launch.grid = (((as_size(self.rows * chunks), ""),),)
        return self.finish()

    def _key(self, writer: StatementWriter, place: Expr) -> str:
        """Write the number by which the value at a place sorts."""
        value = writer.write(self.body_at(self.x, place))
        function = "wide_sorting_key" if self.is_wide else "sorting_key"
        return f"{'~' if self.loop.descending else ''}{function}({writer.typed(value, self.loop.dtype)})"

    def _sorted(self, key: str) -> list[str]:
        """Return the lines that sort a chunk by 64-bit numbers: the key above, the place below."""
        return [
            f"above = tl.where(r_mask, {key}, {GREATEST_KEY}).to(tl.int64) << 32",
            "ordered = tl.sort(tl.broadcast_to(above, [CHUNK]) | r.to(tl.int64), 0)",
            "key = (ordered >> 32).to(tl.int32)",
            "place = ordered & 4294967295",
        ]

    def _ranked(self, key: str) -> list[str]:
        """Return the lines that count for each value those of its chunk that come before it."""
        inner = self.writer({}, "other_")
        inner.name_axes("other", ())
        other = self._key(inner, Var("other", self.length))
        return [
            f"key = tl.broadcast_to({key}, [CHUNK])",
            "place = r",
            "rank = tl.zeros([CHUNK], tl.int32)",
            f"for other in range(start, tl.minimum(start + CHUNK, {self.length})):",
            *indented([*inner.lines, f"other_key = {other}"]),
            "    rank += ((other_key < key) | ((other_key == key) & (other < r))).to(tl.int32)",
        ]


class MergedRuns(RowSort):
    """Writes the merge of sorted runs of each row, two by two."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]):
        super().__init__("merged_runs", group, buffers, hints)

    def write(self, run: int, source: int) -> Launch:
        """Return the launch that merges runs of `run` values, from one set of runs to the other."""
        kind, count, length = self.index_type(self.loop.numel), as_size(self.rows * self.length), self.length
        keys, places = self.runs(source)
        merged_keys, merged_places = self.runs(1 - source, "merged_")
        self._add("run", "i64", run)
        self.launch.body = [
            f"x = {range_text(f'{program_text(kind)} * XBLOCK', 'XBLOCK', kind)}",
            f"x_mask = x < {size_text(count)}",
            f"run = {index_text('run', kind) if kind != 'tl.int32' else 'run.to(tl.int32)'}",
            f"row = x // {length} * {length}",
            f"key = tl.load({keys} + x, x_mask)",
            f"place = tl.load({places} + x, x_mask)",
            f"target = merged_place({keys} + row, key, x - row, run, {length}, x_mask, {length.bit_length()})",
            f"tl.store({merged_keys} + (row + target), key, x_mask)",
            f"tl.store({merged_places} + (row + target), place, x_mask)",
        ]
        self.launch.choice, self.launch.candidates = element_choices(evaluate(count, self.hints))
        self.launch.grid = (((count, "XBLOCK"),),)
        return self.finish()


class SortedValues(RowSort):
    """Writes the sorted values, and the index that each comes from, by the places that merges found."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]):
        super().__init__("sorted_values", group, buffers, hints)

    def write(self, source: int) -> Launch:
        """Return the launch."""
        kept: Size = self.loop.kept
        count, x = as_size(self.rows * kept), Var("x", as_size(self.rows * kept))
        kind = self.index_type(count)
        row, at = unflatten_index(x, (self.rows, kept))
        writer = self.writer({"x": "x_mask"})
        _, places = self.runs(source)
        found = writer.index(row * self.length + at)
        place = writer.bind(f"tl.load({places} + ({found.text}), x_mask, other=0).to(tl.int64)", "x")
        writer.name_axes(place.text, "x")
        for member in self.group.members:
            if member.name in self.group.stored:
                is_value = member is self.member
                value = writer.write(self.body_at(row, Var(place.text, self.length))) if is_value else place
                writer.store(self.pointer(member.name, True), x, value)
        self.launch.body = [
            f"x = {range_text(f'{program_text(kind)} * XBLOCK', 'XBLOCK', kind)}",
            f"x_mask = x < {size_text(count)}",
            *writer.lines,
        ]
        self.launch.choice, self.launch.candidates = element_choices(evaluate(count, self.hints))
        self.launch.grid = (((count, "XBLOCK"),),)
        return self.finish()
