"""Loops of the IR whose points act one after the other: scatters, which write where an index says, scans and sorts.

Data only, like `ir`. Each is a kernel of its own: what makes its values is part of it, what follows is not. Two points of a
scatter may meet in one place; then they act in row-major order, as in eager, so that results do not depend on threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.core.algebra import Expr, Var
from rushlight.inductor.ir import Loop, Pointwise, Value, value_text
from rushlight.inductor.sizes import Size


@dataclass(frozen=True, eq=False, slots=True)
class Position:
    """A coordinate that is read from memory: `variable` stands for it, and it must lie in [0, size), counted from the end
    where `wrap` holds and it is negative."""

    variable: Var
    value: Value
    size: Size
    wrap: bool

    def __str__(self) -> str:
        return f"{self.variable} in {'-' if self.wrap else ''}[0, {self.size})"


@dataclass(frozen=True, eq=False, slots=True)
class Scatter(Loop):
    """The results of `base`, into which each point of the ranges puts `body` at `place`, an index of `positions`' variables
    and of the loop's, by `mode`: "store", "sum", "prod", "max" or "min".

    Points that differ in a variable of `apart` never meet.
    """

    base: Pointwise
    place: Expr
    positions: tuple[Position, ...]
    mode: str
    apart: tuple[Var, ...]

    def values(self) -> tuple[Value, ...]:
        return (self.base.body, self.body, *(position.value for position in self.positions))

    def text_parts(self) -> tuple[str, str, list[str]]:
        parameters, unpack, fields = Loop.text_parts(self)
        lines = []
        for position in self.positions:
            lines += [f"def {position.variable}({parameters}):  # {position}", *_body(unpack, position.value)]
        base_parameters, base_unpack, _ = self.base.text_parts()
        lines += [f"def base({base_parameters}):", *_body(base_unpack, self.base.body)]
        fields += [f"place={self.place}", f"mode={self.mode}", f"apart=[{', '.join(map(str, self.apart))}]"]
        return parameters, unpack, [*fields, "\n".join(lines)]


def _body(unpack: str, value: Value) -> list[str]:
    return [f"  {line}" for line in (unpack, *value_text(value).splitlines())]


@dataclass(frozen=True, eq=False, slots=True)
class Scan(Loop):
    """At each point, `scan_type` ("sum", "prod", "max", "logsumexp", "argmax", ...) over the bodies of the points up to it
    along dimension `dim`. "argmax" and "argmin" give the last place of the extremum so far."""

    dim: int
    scan_type: str

    def text_parts(self) -> tuple[str, str, list[str]]:
        parameters, unpack, fields = Loop.text_parts(self)
        return parameters, unpack, [*fields, f"dim={self.dim}", f"scan_type={self.scan_type}"]


@dataclass(frozen=True, eq=False, slots=True)
class Sort(Loop):
    """The first `kept` of the bodies of each row, the points along the last dimension, in order. NaN counts as greater than
    every number; equal ones stay in the order in which they come."""

    kept: Size
    descending: bool

    def text_parts(self) -> tuple[str, str, list[str]]:
        parameters, unpack, fields = Loop.text_parts(self)
        return parameters, unpack, [*fields, f"kept={self.kept}", f"descending={self.descending}"]


@dataclass(frozen=True, eq=False, slots=True)
class SortedPlaces(Loop):
    """Where in its row each result of a sort, the only thing that the body reads, comes from. It is made with that sort."""
