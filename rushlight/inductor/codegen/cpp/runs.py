"""Split loops over columns into loops over runs of columns, along each of which all loads have a stride.

In: the bodies of one pass over columns. Out: the length of a run, and the bodies in terms of a run and a place in it. A
reduction's columns merge several dimensions, and loads of slices or per-channel values only have a stride along the last one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rushlight.core.algebra import Const, Expr, FloorDiv, Mod, Var
from rushlight.inductor.codegen.cpp.expressions import needs_scalar
from rushlight.inductor.ir import Value, substitute, walk

MIN_RUN = 16  # columns; shorter runs do not fill a vector


@dataclass(frozen=True)
class Runs:
    """`count` runs of `length` columns each. In `bodies` the variables `run` and `place` replace the column, which is
    `run * length + place`."""

    run: Var
    place: Var
    bodies: tuple[Value, ...]

    @property
    def count(self) -> int:
        """The number of runs."""
        return self.run.extent

    @property
    def length(self) -> int:
        """The number of columns in a run."""
        return self.place.extent


def runs_of(bodies: Sequence[Value], column: Var) -> Runs | None:
    """Return the longest runs that can be vectorized, if all columns together cannot; None if there are no such runs."""
    columns = column.extent
    if not isinstance(columns, int) or not any(needs_scalar(body, column) for body in bodies):
        return None
    indices = {getattr(node, "index", None) for body in bodies for node in walk(body)}
    divisors = {divisor for index in indices for divisor in _divisors(index, column)}
    lengths = {math.gcd(columns, divisor) for divisor in divisors} | {math.gcd(columns, *divisors)}
    for length in sorted(lengths, reverse=True):
        if length < MIN_RUN:
            return None
        run, place = Var("run", columns // length), Var("place", length)
        made = tuple(substitute(body, {column: run * length + place}) for body in bodies)
        if not any(needs_scalar(body, place) for body in made):
            return Runs(run, place, made)
    return None


def _divisors(index: object, column: Var) -> Iterator[int]:
    """Yield the numbers by which an index divides expressions of the column."""
    if isinstance(index, Expr):
        for part in index.parts():
            if isinstance(part, FloorDiv | Mod) and part.contains(column) and isinstance(part.divisor, Const):
                yield part.divisor.value
