"""SymInt and SymBool: an integer that is not fixed yet, and a comparison of such integers.

In: an expression of size symbols and the environment that knows them. Out: ordinary Python arithmetic on it. Stage: capture
with symbolic sizes.

Code that needs a real integer (`range`, `int`, NumPy, a C function) gets the example's value, and a guard fixes the size to
that value. So code that was not written for symbols stays correct.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

import rushlight._C as _C
from rushlight.core.algebra import Expr, as_expr
from rushlight.core.symbolic.relations import Relation, at_least, below, different, equal

_MAX_POWER = 8


class UnknownSizeError(RuntimeError):
    """A program needs a number that is known only at run time, and the stated limits don't decide what it asks."""


class Environment(Protocol):
    """The methods that symbolic integers call on their environment."""

    version: int

    def integer(self, expression: Expr) -> Any:
        """Return an expression as an integer: an int where it is constant."""

    def simplify(self, expression: Expr) -> Expr:
        """Return the expression, simplified by all that is known."""

    def hint_of(self, expression: Expr) -> int:
        """Return its value in the example."""

    def is_unknown(self, expression: Expr) -> bool:
        """Return whether it depends on an unbacked symbol, which has no value at capture."""

    def prove(self, relation: Relation) -> bool | None:
        """Return whether a relation always holds (True) or never (False); None if unknown."""

    def evaluate(self, relation: Relation) -> bool:
        """Return whether a relation holds in the example; adds a guard."""

    def specialize(self, expression: Expr) -> int:
        """Return the value in the example; adds a guard that fixes the expression to it."""

    def number(self, function: Callable, *parts: Any) -> Any:
        """Return `function(*parts)`, a float: a SymFloat, or computed with the example's values, which guards fix."""


class SymBool:
    """A comparison of symbolic integers. Asking for its truth gives the example's answer and adds a guard."""

    __slots__ = ("environment", "relation")

    def __init__(self, environment: Environment, relation: Relation):
        self.environment = environment
        self.relation = relation

    def __bool__(self) -> bool:
        return self.environment.evaluate(self.relation)

    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    __hash__ = None

    def __repr__(self) -> str:
        return str(self.relation)


class SymInt:
    """A symbolic integer: an expression of the environment's symbols, for sizes that the captured program leaves open.

    Arithmetic with ints and SymInts gives a SymInt, or an int where nothing symbolic is left. `hint` is its value for the
    example that the program is captured with. `index()`, `int()` and `float()` fix it to that value.

    `isinstance(size, int)` is True, because programs use it to tell numbers from tensors and lists; `type(size)` is SymInt.
    """

    __slots__ = ("environment", "_expression", "_hash", "_version")

    def __init__(self, environment: Environment, expression: Expr):
        self.environment = environment
        self._expression = expression
        self._version = environment.version
        # Hash the environment too: caches keyed by sizes outlive it, and another environment may use the same symbol names.
        self._hash = hash((id(environment), expression))

    @property
    def __class__(self) -> type:
        return int

    @property
    def expr(self) -> Expr:
        """Return the expression, with replaced symbols substituted."""
        if self._version != self.environment.version:
            self._expression = self.environment.simplify(self._expression)
            self._version = self.environment.version
        return self._expression

    @property
    def is_unknown(self) -> bool:
        """Return whether it depends on an unbacked symbol."""
        return self.environment.is_unknown(self.expr)

    @property
    def hint(self) -> int:
        """Return the value in the example."""
        return self.environment.hint_of(self.expr)

    def __index__(self) -> int:
        return self.environment.specialize(self.expr)

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        return self.environment.evaluate(different(self.expr, as_expr(0)))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return str(self.expr)

    def __format__(self, specification: str) -> str:
        return format(int(self), specification) if specification else str(self.expr)

    def __copy__(self) -> SymInt:
        return self

    def __deepcopy__(self, memo: dict) -> SymInt:
        return self

    def __reduce__(self) -> tuple:
        raise TypeError(f"the symbolic size {self} belongs to a capture and cannot be pickled; use int(size) to fix its value")

    def __neg__(self) -> SymInt | int:
        return self.environment.integer(-self.expr)

    def __pos__(self) -> SymInt:
        return self

    def __abs__(self) -> SymInt | int:
        return self if self >= 0 else -self

    def __round__(self, digits: int | None = None) -> SymInt | int:
        return self if digits is None or digits >= 0 else round(int(self), digits)

    def __floor__(self) -> SymInt:
        return self

    __ceil__ = __floor__

    def __divmod__(self, other: Any) -> tuple:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple:
        return other // self, other % self

    def __pow__(self, exponent: Any, modulus: int | None = None) -> Any:
        if modulus is None and (isinstance(exponent, float) or (type(exponent) is int and exponent < 0)):
            return self.environment.number(operator.pow, self, exponent)
        if type(exponent) is not int or exponent > _MAX_POWER or modulus is not None:
            return pow(int(self), exponent, modulus)
        return self.environment.integer(_power(self.expr, exponent))

    def __rpow__(self, base: Any) -> Any:
        return self.environment.number(operator.pow, base, self) if isinstance(base, float) else base ** int(self)

    def __truediv__(self, other: Any) -> Any:
        return _divided(self.environment, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _divided(self.environment, other, self)


def _divided(environment: Environment, dividend: Any, divisor: Any) -> Any:
    operands = [part.item() if isinstance(part, np.number) else part for part in (dividend, divisor)]
    if all(isinstance(part, int | float) for part in operands):
        return environment.number(operator.truediv, *operands)
    if any(isinstance(part, complex) for part in operands):
        return operator.truediv(*[int(part) if type(part) is SymInt else part for part in operands])
    return NotImplemented


def _power(base: Expr, exponent: int) -> Expr:
    result = as_expr(1)
    for _ in range(exponent):
        result = result * base
    return result


def _operand(environment: Environment, value: object) -> Expr | None:
    """Return `value` as an expression, or None if it is no integer."""
    if type(value) is SymInt:
        # A symbol of another environment has no meaning here; use its example's value.
        return value.expr if value.environment is environment else as_expr(int(value))
    return as_expr(value) if isinstance(value, int | np.integer) else None


def _give_arithmetic(name: str, rule: Callable[[Expr, Expr], Expr], plain: Callable[[Any, Any], Any], divides: bool) -> None:
    def forward(self: SymInt, other: Any) -> Any:
        right = _operand(self.environment, other)
        if right is None:
            return _with_float(self.environment, plain, self, other)
        return _combine(self.environment, rule, plain, self.expr, right, divides)

    def reflected(self: SymInt, other: Any) -> Any:
        left = _operand(self.environment, other)
        if left is None:
            return _with_float(self.environment, plain, other, self)
        return _combine(self.environment, rule, plain, left, self.expr, divides)

    setattr(SymInt, f"__{name}__", forward)
    setattr(SymInt, f"__r{name}__", reflected)


def _with_float(environment: Environment, plain: Callable, left: Any, right: Any) -> Any:
    """Combine an open integer with a float or a complex number, in either order."""
    if any(isinstance(part, complex) for part in (left, right)):
        return plain(*[int(part) if type(part) is SymInt else part for part in (left, right)])
    return environment.number(plain, left, right) if any(isinstance(part, float) for part in (left, right)) else NotImplemented


def _combine(environment: Environment, rule: Callable, plain: Callable, left: Expr, right: Expr, divides: bool) -> SymInt | int:
    if divides and not environment.evaluate(at_least(right, as_expr(1))):
        # The algebra divides only by positive expressions.
        return plain(environment.specialize(left), environment.specialize(right))
    return environment.integer(rule(left, right))


def _give_plain(name: str, plain: Callable[[Any, Any], Any]) -> None:
    """Define an operator that has no symbolic form: it computes with the examples' values."""

    def forward(self: SymInt, other: Any) -> Any:
        return plain(int(self), int(other) if type(other) is SymInt else other)

    def reflected(self: SymInt, other: Any) -> Any:
        return plain(other, int(self))

    setattr(SymInt, f"__{name}__", forward)
    setattr(SymInt, f"__r{name}__", reflected)


def _give_comparison(
    name: str, relation: Callable[[Expr, Expr], Relation], plain: Callable[[Any, Any], bool], nearest: Callable[[float], int]
) -> None:
    def compare(self: SymInt, other: Any) -> Any:
        if type(other) is SymInt and other.environment is not self.environment:
            return NotImplemented  # integers of different environments are never equal
        if type(other) is float and math.isfinite(other):
            other = other if name in ("eq", "ne") and not other.is_integer() else nearest(other)
        right = _operand(self.environment, other)
        if right is None:
            if not isinstance(other, float | complex):
                return NotImplemented
            return plain(self.hint if _is_decided(other) else int(self), other)
        found = relation(self.expr, right)
        known = self.environment.prove(found)
        return SymBool(self.environment, found) if known is None else known

    setattr(SymInt, f"__{name}__", compare)


def _is_decided(other: Any) -> bool:
    """Whether a comparison of any integer with this number has one answer: with infinity, NaN, or equality with a fraction."""
    return type(other) is float


for _name, _function, _divides in (
    ("add", operator.add, False), ("sub", operator.sub, False), ("mul", operator.mul, False),
    ("floordiv", operator.floordiv, True), ("mod", operator.mod, True),
):  # fmt: skip
    _give_arithmetic(_name, _function, _function, _divides)
for _name in ("lshift", "rshift", "and_", "or_", "xor"):
    _give_plain(_name.rstrip("_"), getattr(operator, _name))
for _name, _relation, _nearest in (
    ("eq", equal, int), ("ne", different, int), ("ge", at_least, math.ceil), ("lt", below, math.ceil),
    ("gt", lambda left, right: below(right, left), math.floor),
    ("le", lambda left, right: at_least(right, left), math.floor),
):  # fmt: skip
    _give_comparison(_name, _relation, getattr(operator, _name), _nearest)
_C.configure(symbolic_type=SymInt)
