"""Loops over columns as loops over runs of them, along each of which every read has a stride.

In: the bodies of one pass over columns. Out: how long a run is, and the bodies with a column as its run and its place in that.
The columns of a reduction are several dimensions in one, and what is read of a slice, or once per channel, walks evenly only
along the last of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rushlight.core.algebra import Const, Expr, FloorDiv, Mod, Var
from rushlight.inductor.codegen.expressions import needs_scalar
from rushlight.inductor.ir import Value, substitute, walk

SHORTEST = 16  # columns of a run that are worth a loop: those of a vector


@dataclass(frozen=True)
class Runs:
    """`count` runs of `length` columns each. In `bodies` the variables `run` and `place` stand for the column
    `run * length + place`."""

    run: Var
    place: Var
    bodies: tuple[Value, ...]

    @property
    def count(self) -> int:
        """How many runs there are."""
        return self.run.extent

    @property
    def length(self) -> int:
        """How many columns a run has."""
        return self.place.extent


def runs_of(bodies: Sequence[Value], column: Var) -> Runs | None:
    """The longest runs that can be vectors where all columns together cannot; None where there are no such."""
    columns = column.extent
    if not isinstance(columns, int) or not any(needs_scalar(body, column) for body in bodies):
        return None
    indices = {getattr(node, "index", None) for body in bodies for node in walk(body)}
    divisors = {divisor for index in indices for divisor in _divisors(index, column)}
    lengths = {math.gcd(columns, divisor) for divisor in divisors} | {math.gcd(columns, *divisors)}
    for length in sorted(lengths, reverse=True):
        if length < SHORTEST:
            return None
        run, place = Var("run", columns // length), Var("place", length)
        made = tuple(substitute(body, {column: run * length + place}) for body in bodies)
        if not any(needs_scalar(body, place) for body in made):
            return Runs(run, place, made)
    return None


def _divisors(index: object, column: Var) -> Iterator[int]:
    """The numbers by which an index divides what has to do with the column."""
    if isinstance(index, Expr):
        for part in index.parts():
            if isinstance(part, FloorDiv | Mod) and part.contains(column) and isinstance(part.divisor, Const):
                yield part.divisor.value
