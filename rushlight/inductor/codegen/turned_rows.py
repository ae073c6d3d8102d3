"""Rows whose elements lie apart in memory while those of neighbouring rows lie side by side: a softmax or layer norm over the
channels of images, with the channels last in what it makes.

In: a group of loops over rows. Out: a kernel that turns what it reads of some rows at a time into rows that lie together, and
then walks those as `LoopKernel` does, which would fetch a cache line for every element, in every pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rushlight.core.algebra import Expr, Var, as_expr, to_cpp
from rushlight.core.dtype import float32
from rushlight.inductor.codegen.expressions import StatementWriter
from rushlight.inductor.codegen.kernels import LoopKernel, indented
from rushlight.inductor.ir import Buffer, Call, Constant, IndexValue, Load, Reduction, substitute, walk
from rushlight.inductor.scheduler import Group, body_in_domain, row_variables
from rushlight.inductor.sizes import product, rounded_up, stride_along

ROWS = 16  # that are turned together
FEWEST_COLUMNS = 8  # that are worth it
BLOCK_BYTES = 1 << 17  # of what is turned, at most
BESIDE = 16  # floats between two turned rows, so that rows of a power of two do not displace one another from the caches


@dataclass(frozen=True)
class TurnedRows:
    """The rows of a domain as `outer` times `width`, and for each read that is turned, by its buffer and its index in x and r,
    its step from column to column."""

    outer: int
    width: int
    steps: Mapping[tuple[str, Expr], int]


def turned_rows_of(group: Group, buffers: Mapping[str, Buffer]) -> TurnedRows | None:
    """How to cut a group whose rows are better turned; None for any other."""
    if group.domain is None or not all(isinstance(size, int) for size in group.domain) or group.domain[1] < FEWEST_COLUMNS:
        return None
    nodes = [node for member in group.members for node in walk(body_in_domain(member, group.domain))]
    if not all(isinstance(node, Load | Constant | IndexValue | Call) for node in nodes):
        return None  # what is read under a mask may lie outside
    loads = [node for node in nodes if isinstance(node, Load) and buffers[node.buffer].layout.dtype is float32]
    ranges = next((member.data.ranges for member in group.members if isinstance(member.data, Reduction)), ())
    for first in range(len(ranges)):
        width = product(ranges[first:])
        steps = _steps(loads, group.domain, width) if width >= ROWS else {}
        if steps and len(steps) * _block_bytes(group.domain[1]) <= BLOCK_BYTES:
            return TurnedRows(group.domain[0] // width, width, steps)
    return None


def _steps(loads: list[Load], domain: tuple[int, int], width: int) -> dict[tuple[str, Expr], int]:
    (x, r), c = row_variables(domain), Var("c", width)
    row = {x: Var("o", domain[0] // width) * width + c}
    found = {}
    for load in loads:
        index = substitute(load, row).index
        step = stride_along(index, r)
        if stride_along(index, c) == 1 and isinstance(step, int) and step not in (0, 1):
            found[load.buffer, load.index] = step
    return found


def _distance(columns: int) -> int:
    """Of two turned rows, in floats."""
    return rounded_up(columns, ROWS) + BESIDE


def _block_bytes(columns: int) -> int:
    return ROWS * _distance(columns) * float32.itemsize


class TurnedRowsKernel(LoopKernel):
    """Writes a group that `turned_rows_of` takes."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], turned: TurnedRows):
        super().__init__(group, buffers)
        self.turned = turned
        self.names = {read: f"turned{number}" for number, read in enumerate(turned.steps)}

    def _writer(self, column: Var) -> StatementWriter:
        writer = _TurnedWriter(column, self.pointer, self.element_type, self.stream)
        writer.turned = {read: f"{name} + (x - first) * {_distance(self.domain[1])}L" for read, name in self.names.items()}
        return writer

    def _all_rows(self) -> list[str]:
        width, columns, row = self.turned.width, self.domain[1], self._row()
        distance = _distance(columns)
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
    """Reads what was turned from its block."""

    turned: dict[tuple[str, Expr], str]

    def _load(self, value: Load) -> str:
        row = self.turned.get((value.buffer, value.index))
        return super()._load(value) if row is None else self.bind(f"{self.lane}.load({row} + {self.column.name})")
