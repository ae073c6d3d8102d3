"""Splits a loop over columns into segments in which all masks are constant.

In: the bodies of one pass over columns. Out: the columns at which to cut, and the bodies of each segment. A concatenation
becomes a copy of each part, and the interior of a padded tensor needs no test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rushlight.core.algebra import Expr, FloorDiv, Var, as_expr
from rushlight.core.algebra.nodes import linear_form
from rushlight.core.dtype import bool_, int64
from rushlight.inductor.codegen.cpp.expressions import needs_branches
from rushlight.inductor.ir import Call, Constant, IndexValue, Indirect, Masked, Search, Value, walk
from rushlight.inductor.lowering.builder import call, masked
from rushlight.inductor.sizes import Size, as_size, stride_along

MAX_STEPS = 1024  # limits the code size: IR nodes in the bodies of all segments together
LESS = {"lt": True, "ge": False}


@dataclass(frozen=True)
class Cuts:
    """Segment `n` has the columns from `positions[n - 1]` to before `positions[n]`. Positions are sorted and may lie outside of
    the columns. `bodies` has the bodies of each segment."""

    positions: tuple[Size, ...]
    bodies: tuple[tuple[Value, ...], ...]


def cuts_of(bodies: Sequence[Value], column: Var) -> Cuts | None:
    """Return the cuts after which no segment has masks that vary along its columns; None if there are no such masks, or no such
    cuts."""
    if not any(needs_branches(body, column) for body in bodies):
        return None
    found = {_column_of_change(node, column) for body in bodies for node in walk(body)} - {None}
    positions = _sort_positions(found) if found and not _depend_on_data(found, bodies) else None
    if positions is None or (len(positions) + 1) * len(bodies) > MAX_STEPS:
        return None
    settled = [_SegmentSimplifier(positions, number, column) for number in range(len(positions) + 1)]
    made = tuple(tuple(map(each.of, bodies)) for each in settled)
    every = [body for segment in made for body in segment]
    if any(needs_branches(body, column) for body in every) or sum(1 for body in every for _ in walk(body)) > MAX_STEPS:
        return None
    return Cuts(positions, made)


def _depend_on_data(positions: set[Size], bodies: Sequence[Value]) -> bool:
    """Return whether the positions of cuts depend on an index read from memory."""
    read = [node.variable for body in bodies for node in walk(body) if isinstance(node, Indirect)]
    return any(isinstance(position, Expr) and position.contains(variable) for position in positions for variable in read)


def _column_of_change(node: Value, column: Var) -> Size | None:
    """Return the first column at which a comparison changes its value; None if it may change more than once."""
    if not isinstance(node, Call) or node.name not in LESS:
        return None
    if not all(isinstance(argument, IndexValue | Constant) and argument.dtype is int64 for argument in node.arguments):
        return None
    position, bound = node.arguments
    if not isinstance(position, IndexValue) or not position.index.contains(column):
        return None
    if isinstance(bound, IndexValue) and bound.index.contains(column):
        return None
    return _crossing(position.index, as_expr(bound.number) if isinstance(bound, Constant) else bound.index, column)


def _crossing(index: Expr, bound: Expr, column: Var) -> Size | None:
    """Return the first column where `index` reaches `bound`, for indices that grow by one per column or per run of columns."""
    if stride_along(index, column) == 1:
        return as_size(bound - index.substitute({column: 0}))
    inside = [(term, scale) for term, scale in linear_form(index)[0] if term.contains(column)]
    if len(inside) != 1 or inside[0][1] != 1 or not isinstance(inside[0][0], FloorDiv):
        return None
    quotient = inside[0][0]
    if quotient.divisor.contains(column) or stride_along(quotient.dividend, column) != 1:
        return None
    return as_size((bound - (index - quotient)) * quotient.divisor - quotient.dividend.substitute({column: 0}))


def _sort_positions(positions: set[Size]) -> tuple[Size, ...] | None:
    """Return the positions sorted; None if their order is not known."""
    first = next(iter(positions))
    distances = {position: as_size(as_expr(position) - as_expr(first)) for position in positions}
    if not all(isinstance(distance, int) for distance in distances.values()):
        return None
    return tuple(sorted(positions, key=distances.__getitem__))


class _SegmentSimplifier:
    """Simplifies bodies for one segment."""

    def __init__(self, positions: tuple[Size, ...], number: int, column: Var):
        self.positions = positions
        self.number = number
        self.column = column
        self._made: dict[int, Value] = {}

    def of(self, value: Value) -> Value:
        """Return the value with the comparisons folded that are known in this segment; shared nodes stay shared."""
        found = self._made.get(id(value))
        if found is None:
            found = self._made[id(value)] = self._make(value)
        return found

    def _make(self, value: Value) -> Value:
        if isinstance(value, Call):
            position = _column_of_change(value, self.column)
            if position is not None:
                before = self.number <= self.positions.index(position)
                return Constant(bool_, before is LESS[value.name])
            return call(value.name, value.dtype, *map(self.of, value.arguments))
        if isinstance(value, Masked):
            mask = self.of(value.mask)
            if isinstance(mask, Constant):
                return self.of(value.body if mask.number else value.other)
            return masked(value.dtype, mask, self.of(value.body), self.of(value.other))
        if isinstance(value, Indirect):
            return replace(value, index=self.of(value.index), body=self.of(value.body))
        if isinstance(value, Search):
            return replace(value, value=self.of(value.value))
        return value
