"""Ordered loops of the IR, whose points act one after the other: scatters, scans and sorts.

Data only, like `ir`. Each is a kernel of its own: producers are fused into it, consumers are not. Two points of a scatter may
write to one place; they act in row-major order, as in eager, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.core.algebra import Expr, Var
from rushlight.inductor.ir import Loop, Pointwise, Value, value_text
from rushlight.inductor.sizes import Size


@dataclass(frozen=True, eq=False, slots=True)
class Position:
    """A coordinate read from memory. `variable` is bound to it. It must lie in [0, size); with `wrap` a negative one counts
    from the end."""

    variable: Var
    value: Value
    size: Size
    wrap: bool

    def __str__(self) -> str:
        return f"{self.variable} in {'-' if self.wrap else ''}[0, {self.size})"


@dataclass(frozen=True, eq=False, slots=True)
class Scatter(Loop):
    """The results of `base`, into which each point of the ranges combines `body` by `mode`: "store", "sum", "prod", "max" or
    "min". `place` is the position to write to, in terms of the variables of `positions` and of the loop.

    Points that differ in a variable of `apart` never write to the same place.
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
            lines += [f"def {position.variable}({parameters}):  # {position}", *_body_lines(unpack, position.value)]
        base_parameters, base_unpack, _ = self.base.text_parts()
        lines += [f"def base({base_parameters}):", *_body_lines(base_unpack, self.base.body)]
        fields += [f"place={self.place}", f"mode={self.mode}", f"apart=[{', '.join(map(str, self.apart))}]"]
        return parameters, unpack, [*fields, "\n".join(lines)]


def _body_lines(unpack: str, value: Value) -> list[str]:
    return [f"  {line}" for line in (unpack, *value_text(value).splitlines())]


@dataclass(frozen=True, eq=False, slots=True)
class Scan(Loop):
    """At each point, `scan_type` ("sum", "prod", "max", "logsumexp", "argmax", ...) over the bodies of the points up to it
    along dimension `dim`. "argmax" and "argmin" give the last index of the extremum so far."""

    dim: int
    scan_type: str

    def text_parts(self) -> tuple[str, str, list[str]]:
        parameters, unpack, fields = Loop.text_parts(self)
        return parameters, unpack, [*fields, f"dim={self.dim}", f"scan_type={self.scan_type}"]


@dataclass(frozen=True, eq=False, slots=True)
class Sort(Loop):
    """The first `kept` values of each row (the last dimension) in sorted order. NaN sorts as greater than every number; the
    sort is stable."""

    kept: Size
    descending: bool

    def text_parts(self) -> tuple[str, str, list[str]]:
        parameters, unpack, fields = Loop.text_parts(self)
        return parameters, unpack, [*fields, f"kept={self.kept}", f"descending={self.descending}"]


@dataclass(frozen=True, eq=False, slots=True)
class SortedPlaces(Loop):
    """The index in its row that each result of a sort comes from. The kernel of that sort computes it; the body only loads the
    sort's result."""
