"""SymFloat: a float that follows from open sizes, such as a scale `size ** -0.5`, or that the program computes.

In: ordinary Python arithmetic on symbolic integers and floats. Out: the calls that compute the float, as a tree that a capture
turns into nodes. Stage: capture with symbolic sizes, in environments that keep floats.

As with SymInt, code that needs the number itself (`float`, `math.log`, a comparison) gets the example's value, and guards fix
the sizes that it follows from.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.core.symbolic.integers import SymInt, UnknownSizeError

_LARGEST_FACTOR = 1 << 16
"""Products of a size and a numerator below this bound are exact in a float."""
_EXAMPLE = 1.5
"""The hint of floats that the program computes."""


def unknown_float() -> float:
    """Stand for a float that the program computes: `SymFloat(unknown_float)`. UnknownSizeError for its value."""
    raise UnknownSizeError(
        "the value of a float is needed, which the program computes: it is known when it runs, and may be another one each "
        "time. Keep it in a tensor, or use torch.where in the place of a branch"
    )


def sym_float(number: float) -> Any:
    """Return a number as a float; an open size stays open where its environment keeps floats."""
    if type(number) is SymInt:
        return number.environment.number(sym_float, number)
    return number if type(number) is SymFloat else float(number)


def sym_sqrt(number: float) -> Any:
    """Return the square root of a number; that of an open size stays open where its environment keeps floats."""
    if type(number) is SymInt:
        return number.environment.number(math.sqrt, number)
    return SymFloat(math.sqrt, number) if type(number) is SymFloat else math.sqrt(number)


class SymFloat:
    """A float that follows from open sizes: the call `function(*parts)`, whose parts are numbers, SymInts and SymFloats.

    Arithmetic gives SymFloats. `hint` is its value for the example that the program is captured with. `float()`, `bool()` and
    comparisons fix the sizes to those of the example; so do `int()` and `round()`. `math.floor`, `ceil` and `trunc`
    of a quotient of sizes give a size.

    `isinstance(number, float)` is True; `type(number)` is SymFloat.
    """

    __slots__ = ("function", "parts")

    def __init__(self, function: Callable, *parts: Any):
        self.function = function
        self.parts = parts

    @property
    def __class__(self) -> type:
        return float

    @property
    def hint(self) -> float:
        """Return the value in the example."""
        return _evaluated(self, lambda size: size.hint, lambda: _EXAMPLE)

    def __float__(self) -> float:
        return _evaluated(self, int, unknown_float)

    def __complex__(self) -> complex:
        return complex(float(self))

    def __bool__(self) -> bool:
        return bool(float(self))

    def __hash__(self) -> int:
        return hash((self.function, self.parts))

    def __repr__(self) -> str:
        return f"{self.function.__name__}({', '.join(map(repr, self.parts))})"

    def __format__(self, specification: str) -> str:
        return format(float(self), specification) if specification else repr(self)

    def __copy__(self) -> SymFloat:
        return self

    def __deepcopy__(self, memo: dict) -> SymFloat:
        return self

    def __reduce__(self) -> tuple:
        raise TypeError(f"the number {self} belongs to a capture and cannot be pickled; use float(number) to fix its value")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(float(self), name)

    def __neg__(self) -> SymFloat:
        return SymFloat(operator.neg, self)

    def __pos__(self) -> SymFloat:
        return self

    def __abs__(self) -> SymFloat:
        return SymFloat(operator.abs, self)

    def __floor__(self) -> Any:
        found = _quotient(self)
        return math.floor(float(self)) if found is None else found[0] // found[1]

    def __ceil__(self) -> Any:
        found = _quotient(self)
        return math.ceil(float(self)) if found is None else -(-found[0] // found[1])

    def __trunc__(self) -> Any:
        found = _quotient(self)
        return math.trunc(float(self)) if found is None or found[0] < 0 else found[0] // found[1]

    def __int__(self) -> int:
        return math.trunc(float(self))

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self), digits)


def _quotient(number: SymFloat) -> tuple[Any, Any] | None:
    """Return the integers whose quotient a float is, up to rounding that crosses no integer; the second is positive."""
    if number.function is sym_float:
        return number.parts[0], 1
    if number.function is operator.truediv:
        over, under = number.parts
        return (over, under) if type(over) in (int, SymInt) and type(under) in (int, SymInt) and under > 0 else None
    if number.function is operator.mul:
        factor, size = sorted(number.parts, key=lambda part: type(part) is SymInt)
        if type(size) is SymInt and type(factor) is float and math.isfinite(factor):
            over, under = factor.as_integer_ratio()
            return (size * over, under) if max(abs(over), under) <= _LARGEST_FACTOR else None
    return None


def _evaluated(number: Any, value_of: Callable[[SymInt], int], value_of_unknown: Callable[[], float]) -> Any:
    if type(number) is SymInt:
        return value_of(number)
    if type(number) is not SymFloat:
        return number
    function = value_of_unknown if number.function is unknown_float else number.function
    return function(*[_evaluated(part, value_of, value_of_unknown) for part in number.parts])


def _give_arithmetic(function: Callable) -> None:
    def forward(self: SymFloat, other: Any) -> Any:
        return _combined(function, self, other)

    def reflected(self: SymFloat, other: Any) -> Any:
        return _combined(function, other, self)

    setattr(SymFloat, f"__{function.__name__}__", forward)
    setattr(SymFloat, f"__r{function.__name__}__", reflected)


def _combined(function: Callable, *parts: Any) -> Any:
    if any(isinstance(part, complex) for part in parts):
        return function(*[float(part) if type(part) is SymFloat else part for part in parts])
    if not all(isinstance(part, int | float | np.number) for part in parts):
        return NotImplemented
    return number_of(function, *[part.item() if isinstance(part, np.number) else part for part in parts])


def number_of(function: Callable, *parts: Any) -> Any:
    """Return `function(*parts)` as a SymFloat; what is no float in the example is computed with the example's values."""
    if function is operator.pow:
        parts = tuple([sym_float(part) for part in parts])
    made = SymFloat(function, *parts)
    return made if type(made.hint) is float else function(*[_evaluated(part, int, unknown_float) for part in parts])


def _give_comparison(name: str) -> None:
    compare = getattr(operator, name)
    setattr(SymFloat, f"__{name}__", lambda self, other: compare(float(self), other))


for _function in (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
):  # fmt: skip
    _give_arithmetic(_function)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _give_comparison(_name)
