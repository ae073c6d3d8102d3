"""Quotients of open sizes: floats on the way to an integer, as in `int(n / window)` or `ceil(n / 2)`.

A quotient is kept as a fraction as long as Python's float is that fraction, rounded at most once. Rounding it up or down then
gives the same integer, which stays open. Any other use specializes the sizes to their example values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rushlight.core.size import short_fraction
from rushlight.core.symbolic import SymInt
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue, from_python
from rushlight.dynamo.values.symbolic import SymbolicValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

Integer = SymInt | int


class OpenQuotientValue(ConstantValue):
    """`numerator / denominator`, with numerator >= 0 and denominator > 0. Its use as a constant specializes it."""

    source = None

    def __init__(self, numerator: Integer, denominator: Integer) -> None:
        self.numerator = numerator
        self.denominator = denominator

    @property
    def value(self) -> float:
        """Return the example value, which is guarded from now on."""
        return int(self.numerator) / int(self.denominator)

    def python_type(self) -> type:
        return float

    def truth(self, tx: Following) -> bool:
        return bool(self.numerator)

    def same_as(self, other: Value) -> bool:
        return self is other or super().same_as(other)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in ("__int__", "__trunc__", "__floor__"):
            return from_python(self.numerator // self.denominator)
        if name == "__ceil__":
            return from_python((self.numerator + self.denominator - 1) // self.denominator)
        return super().method(tx, name, args, kwargs)

    def write(self, writer: Writer) -> str:
        parts = [str(part) if type(part) is int else writer.symbolic(part) for part in (self.numerator, self.denominator)]
        return f"({' / '.join(parts)})"

    def __str__(self) -> str:
        return f"{self.numerator} / {self.denominator}"


def quotient(symbol: str, left: Value, right: Value) -> Value | None:
    """Evaluate `left / right`, or `left * right` if one of them is a float. None if the result cannot stay open."""
    if not (is_open_number(left) or is_open_number(right)) or (symbol == "*" and not _is_float(left, right)):
        return None
    one, other = fraction(left), fraction(right)
    if one is None or other is None:
        return None
    if symbol == "/":
        other = other[::-1]
    numerator, denominator = one[0] * other[0], one[1] * other[1]
    if (numerator >= 0) is not True or (denominator >= 1) is not True:
        return None
    return OpenQuotientValue(numerator, denominator)


def is_open_number(value: Value) -> bool:
    """Return whether a value is an open integer or a quotient of open integers."""
    return type(value) in (SymbolicValue, OpenQuotientValue)


def _is_float(*values: Value) -> bool:
    return any(value.python_type() is float for value in values)


def fraction(value: Value) -> tuple[Integer, Integer] | None:
    """Return the exact value of a float or integer as a fraction of two integers; None if it is not known exactly."""
    if type(value) is SymbolicValue:
        return value.number, 1
    if type(value) is OpenQuotientValue:
        return _exact_quotient(value.numerator, value.denominator)
    known = value.constant() if type(value) is ConstantValue else None
    if type(known) is int:
        return known, 1
    if type(known) is not float or not math.isfinite(known):
        return None
    return short_fraction(known)


def _exact_quotient(numerator: Integer, denominator: Integer) -> tuple[Integer, Integer] | None:
    """Return a quotient that a float represents exactly: the denominator is a power of two or divides the numerator."""
    if type(denominator) is int and denominator & (denominator - 1) == 0:
        return numerator, denominator
    return (numerator // denominator, 1) if numerator % denominator == 0 else None
