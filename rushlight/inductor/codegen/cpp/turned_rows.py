"""Transposed rows: rows with strided elements whose neighbouring rows are contiguous, as in a softmax or layer norm over
channels that writes channels-last results.

In: a group of loops over rows. Out: a kernel that transposes a block of rows into contiguous memory and then walks them like
`LoopKernel`, which alone would load a cache line per element in every pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rushlight.core.algebra import Expr, Var, as_expr, to_cpp
from rushlight.core.dtype import float32
from rushlight.inductor.codegen.cpp.expressions import StatementWriter
from rushlight.inductor.codegen.cpp.kernels import LoopKernel, indented
from rushlight.inductor.ir import Buffer, Call, Constant, IndexValue, Load, Reduction, substitute, walk
from rushlight.inductor.scheduler import Group, body_in_domain, row_variables
from rushlight.inductor.sizes import product, rounded_up, stride_along

ROWS = 16  # rows per transposed block
MIN_COLUMNS = 8  # transposing shorter rows does not pay off
BLOCK_BYTES = 1 << 17  # maximal size of transposed blocks
ROW_PADDING = 16  # floats between transposed rows: unpadded rows of power-of-two length would evict each other from the cache


@dataclass(frozen=True)
class TurnedRows:
    """The domain's rows split into `outer` times `width`, and for each transposed load its stride from column to column, keyed
    by the buffer and the index in terms of x and r."""

    outer: int
    width: int
    steps: Mapping[tuple[str, Expr], int]


def turned_rows_of(group: Group, buffers: Mapping[str, Buffer]) -> TurnedRows | None:
    """Split the rows of a group whose rows should be transposed; None for other groups."""
    if group.domain is None or not all(isinstance(size, int) for size in group.domain) or group.domain[1] < MIN_COLUMNS:
        return None
    nodes = [node for member in group.members for node in walk(body_in_domain(member, group.domain))]
    if not all(isinstance(node, Load | Constant | IndexValue | Call) for node in nodes):
        return None  # a masked load may be out of bounds, so it can't be moved into a block
    loads = [node for node in nodes if isinstance(node, Load) and buffers[node.buffer].layout.dtype is float32]
    ranges = next((member.data.ranges for member in group.members if isinstance(member.data, Reduction)), ())
    for first in range(len(ranges)):
        width = product(ranges[first:])
        steps = _column_strides(loads, group.domain, width) if width >= ROWS else {}
        if steps and len(steps) * _block_bytes(group.domain[1]) <= BLOCK_BYTES:
            return TurnedRows(group.domain[0] // width, width, steps)
    return None


def _column_strides(loads: list[Load], domain: tuple[int, int], width: int) -> dict[tuple[str, Expr], int]:
    (x, r), c = row_variables(domain), Var("c", width)
    row = {x: Var("o", domain[0] // width) * width + c}
    found = {}
    for load in loads:
        index = substitute(load, row).index
        step = stride_along(index, r)
        if stride_along(index, c) == 1 and isinstance(step, int) and step not in (0, 1):
            found[load.buffer, load.index] = step
    return found


def _padded_length(columns: int) -> int:
    """Return the distance of two transposed rows in floats."""
    return rounded_up(columns, ROWS) + ROW_PADDING


def _block_bytes(columns: int) -> int:
    return ROWS * _padded_length(columns) * float32.itemsize


class TurnedRowsKernel(LoopKernel):
    """Writes a group for which `turned_rows_of` returned a split."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], turned: TurnedRows):
        super().__init__(group, buffers)
        self.turned = turned
        self.names = {read: f"turned{number}" for number, read in enumerate(turned.steps)}

    def _writer(self, column: Var) -> StatementWriter:
        writer = _TurnedWriter(column, self.pointer, self.element_type, self.stream)
        writer.turned = {read: f"{name} + (x - first) * {_padded_length(self.domain[1])}L" for read, name in self.names.items()}
        return writer

    def _all_rows(self) -> list[str]:
        width, columns, row = self.turned.width, self.domain[1], self._row()
        distance = _padded_length(columns)
        start = {self.x: as_expr(Var("first", self.domain[0])), self.r: 0}
        copies = []
        for (buffer, index), name in self.names.items():
            step, at = self.turned.steps[buffer, index], f"{self.pointer(buffer)} + {to_cpp(index.substitute(start))}"
            copies.append(f"rl::turn({at}, {step}L, rows, {columns}L, {name}, {distance}L);")
        self.kernel.header = "pack"
        return [
            f"const long blocks = ({width}L + {ROWS - 1}L) / {ROWS}L;",
            f"for (const long block : rl::shared({self.turned.outer}L * blocks)) {{",
            f"  const long begin = block % blocks * {ROWS}L, first = block / blocks * {width}L + begin;",
            f"  const long rows = begin + {ROWS}L < {width}L ? {ROWS}L : {width}L - begin;",
            *[f"  alignas(64) float {name}[{ROWS * distance}];" for name in self.names.values()],
            *indented(copies),
            "  for (long x = first; x < first + rows; ++x) {",
            *indented(row, 2),
            "  }",
            "}",
        ]


class _TurnedWriter(StatementWriter):
    """Reads transposed values from their block."""

    turned: dict[tuple[str, Expr], str]

    def _write_load(self, value: Load) -> str:
        row = self.turned.get((value.buffer, value.index))
        return super()._write_load(value) if row is None else self.bind(f"{self.lane}.load({row} + {self.column.name})")
