"""Nodes of the algebra: what an expression of sizes and indices is made of.

In: the fields of a node, already in canonical form (only `arithmetic.py` and `symbolic.py` build compound nodes).
Out: interned, immutable nodes and the questions that need no rewriting (free variables, coefficients, evaluation).
Stage: symbolic sizes, and inductor, where every load, store and loop body refers to these.

A canonical expression is one of

    Const                              an integer
    Var                                least <= variable < extent
    Product(factors)                   two or more atoms multiplied, sorted
    FloorDiv(dividend, divisor)        rounding towards minus infinity, divisor > 0
    Mod(dividend, divisor, quotient)   0 <= result < divisor
    Sum(terms, constant)               sum(coefficient * term) + constant, terms sorted

where a term is any node but Const and Sum, and an atom is any term but Product. A Sum has at least one term, and is
never just `1 * term + 0`. Nodes are interned, so two expressions are equal exactly when they are the same object.

The operators (`+ - * // %`, `substitute`) are attached by `operators.py` and `__str__` by `printing.py`, so that
imports between the modules of this package point one way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakValueDictionary

_DIGITS = "0123456789"
_NO_VARIABLES: frozenset[Var] = frozenset()


class Expr:
    """An integer expression over loop variables and size symbols. Immutable, hashable, interned.

    `order` is a key for sorting: by leading variable (i2 before i10), then by kind, then by content.
    """

    __slots__ = ("order", "_bounds", "_free", "__weakref__")

    # A weak table per class: expressions of a finished compilation can be freed.
    _instances: ClassVar[WeakValueDictionary[tuple, Any]]

    def __init_subclass__(cls) -> None:
        cls._instances = WeakValueDictionary()

    def __new__(cls, *fields: Any) -> Any:
        node = cls._instances.get(fields)
        if node is None:
            node = object.__new__(cls)
            node._bounds = node._free = None
            node._fill(*fields)
            node = cls._instances.setdefault(fields, node)
        return node

    def __reduce__(self) -> tuple:
        return type(self), tuple(getattr(self, field) for field in self.__slots__)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return other == self.value if isinstance(self, Const) and isinstance(other, int) else NotImplemented

    __hash__ = object.__hash__

    def __lt__(self, other: Expr) -> bool:
        return self.order < other.order

    def __repr__(self) -> str:
        return str(self)

    def _children(self) -> tuple[Expr, ...]:
        return ()

    def free_variables(self) -> frozenset[Var]:
        """Return every Var that occurs in the expression (not those that only occur in extents)."""
        if self._free is None:
            self._free = _NO_VARIABLES.union(*(child.free_variables() for child in self._children()))
        return self._free

    def parts(self) -> Iterator[Expr]:
        """Yield the expression and all its subexpressions."""
        yield self
        for child in self._children():
            yield from child.parts()

    def contains(self, variable: Var) -> bool:
        """Return whether `variable` occurs anywhere in the expression."""
        return variable in self.free_variables()

    def coefficient(self, variable: Var) -> int | None:
        """Return the stride with respect to `variable`: how much the value changes when the variable grows by one.

        0 where the variable does not occur; None where it occurs inside a FloorDiv, a Mod or a Product, so that no
        integer stride exists.
        """
        found = 0
        for term, scale in linear_form(self)[0]:
            if term is variable:
                found = scale
            elif variable in term.free_variables():
                return None
        return found

    def is_affine_in(self, variable: Var) -> bool:
        """Return whether the expression is `c * variable + rest` with an integer c and a rest without the variable."""
        return self.coefficient(variable) is not None

    def divisible_by(self, divisor: int) -> bool:
        """Return whether the expression is provably a multiple of `divisor` at every point (False also means unknown)."""
        terms, constant = linear_form(self)
        return constant % divisor == 0 and all(scale % divisor == 0 for _, scale in terms)

    if TYPE_CHECKING:

        def _fill(self, *fields: Any) -> None: ...
        def evaluate(self, values: Mapping[Var, Any]) -> Any: ...
        def substitute(self, replacements: Mapping[Var, Expr | int]) -> Expr: ...
        def __add__(self, other: Expr | int) -> Expr: ...
        def __radd__(self, other: int) -> Expr: ...
        def __sub__(self, other: Expr | int) -> Expr: ...
        def __rsub__(self, other: int) -> Expr: ...
        def __mul__(self, other: Expr | int) -> Expr: ...
        def __rmul__(self, other: int) -> Expr: ...
        def __floordiv__(self, other: Expr | int) -> Expr: ...
        def __rfloordiv__(self, other: int) -> Expr: ...
        def __mod__(self, other: Expr | int) -> Expr: ...
        def __rmod__(self, other: int) -> Expr: ...
        def __neg__(self) -> Expr: ...


class Const(Expr):
    """An integer. Equal to the Python int of the same value, and usable as an index (`int(c)`, `range(c)`)."""

    __slots__ = ("value",)

    def _fill(self, value: int) -> None:
        self.value = int(value)
        self.order = (("", -1), 0, self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    __eq__ = Expr.__eq__

    def __index__(self) -> int:
        return self.value

    def evaluate(self, values: Mapping[Var, Any]) -> Any:
        return self.value


class Var(Expr):
    """A loop variable or size symbol with least <= value < extent.

    `extent` is an int, an Expr of size symbols, or None where no upper limit is known (a size symbol). `least` is 0 for loop
    variables, the known minimum for size symbols, and None for an integer of either sign. Two variables are the same when name,
    extent and least agree.
    """

    __slots__ = ("name", "extent", "least")

    def __new__(cls, name: str, extent: int | Expr | None = None, least: int | None = 0) -> Var:
        return super().__new__(cls, name, extent.value if isinstance(extent, Const) else extent, least)

    def _fill(self, name: str, extent: int | Expr | None, least: int | None) -> None:
        self.name = name
        self.extent = extent
        self.least = least
        prefix = name.rstrip(_DIGITS)
        self.order = ((prefix, int(name[len(prefix) :] or -1)), 1, name, str(extent))
        self._free = frozenset((self,))

    def evaluate(self, values: Mapping[Var, Any]) -> Any:
        try:
            return values[self]
        except KeyError:
            raise KeyError(f"evaluate: no value given for variable {self.name} of extent {self.extent}") from None


class Product(Expr):
    """Two or more atoms multiplied; integer factors live in the coefficients of a Sum."""

    __slots__ = ("factors",)

    def _fill(self, factors: tuple[Expr, ...]) -> None:
        self.factors = factors
        self.order = (factors[0].order[0], 2, tuple(factor.order for factor in factors))

    def _children(self) -> tuple[Expr, ...]:
        return self.factors

    def evaluate(self, values: Mapping[Var, Any]) -> Any:
        return math.prod(factor.evaluate(values) for factor in self.factors)


class FloorDiv(Expr):
    """`dividend // divisor`, rounded towards minus infinity."""

    __slots__ = ("dividend", "divisor")

    def _fill(self, dividend: Expr, divisor: Expr) -> None:
        self.dividend = dividend
        self.divisor = divisor
        self.order = (dividend.order[0], 3, dividend.order, divisor.order)

    def _children(self) -> tuple[Expr, ...]:
        return self.dividend, self.divisor

    def evaluate(self, values: Mapping[Var, Any]) -> Any:
        return self.dividend.evaluate(values) // self.divisor.evaluate(values)


class Mod(Expr):
    """`dividend % divisor`, never negative.

    `quotient` is the canonical `dividend // divisor`, kept because `divisor * quotient + this` folds to `dividend`.
    """

    __slots__ = ("dividend", "divisor", "quotient")

    def _fill(self, dividend: Expr, divisor: Expr, quotient: Expr) -> None:
        self.dividend = dividend
        self.divisor = divisor
        self.quotient = quotient
        self.order = (dividend.order[0], 4, dividend.order, divisor.order)

    def _children(self) -> tuple[Expr, ...]:
        return self.dividend, self.divisor

    def evaluate(self, values: Mapping[Var, Any]) -> Any:
        return self.dividend.evaluate(values) % self.divisor.evaluate(values)


class Sum(Expr):
    """`sum(coefficient * term) + constant`; `terms` is a tuple of (term, nonzero coefficient)."""

    __slots__ = ("terms", "constant")

    def _fill(self, terms: tuple[tuple[Expr, int], ...], constant: int) -> None:
        self.terms = terms
        self.constant = constant
        self.order = (terms[0][0].order[0], 5, tuple((term.order, scale) for term, scale in terms), constant)

    def _children(self) -> tuple[Expr, ...]:
        return tuple(term for term, _ in self.terms)

    def evaluate(self, values: Mapping[Var, Any]) -> Any:
        return sum((scale * term.evaluate(values) for term, scale in self.terms), self.constant)


def linear_form(expression: Expr) -> tuple[tuple[tuple[Expr, int], ...], int]:
    """Return any expression as (terms, constant), in the form that Sum stores."""
    kind = type(expression)
    if kind is Sum:
        return expression.terms, expression.constant
    if kind is Const:
        return (), expression.value
    return ((expression, 1),), 0
