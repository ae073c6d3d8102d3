"""Relations between sizes, the form of guards on symbolic sizes.

In: expressions of size symbols. Out: relations in one canonical form, their negation, value and text. Stage: symbolic sizes.

Every comparison of two integers is one of `e == 0`, `e != 0` and `e >= 0` (`a < b` is `b - a - 1 >= 0`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rushlight.core.algebra import Const, Expr, Sum, Var, as_expr, bounds
from rushlight.core.algebra.arithmetic import combine, factors_of
from rushlight.core.algebra.nodes import linear_form
from rushlight.core.algebra.symbolic import exact_quotient

EQUAL, DIFFERENT, NOT_NEGATIVE = "==", "!=", ">="


class Relation(NamedTuple):
    """`expression kind 0`, where kind is `==`, `!=` or `>=`."""

    kind: str
    expression: Expr

    def negated(self) -> Relation:
        """Return the relation that holds exactly where this one does not."""
        if self.kind == NOT_NEGATIVE:
            return Relation(NOT_NEGATIVE, -self.expression - 1)
        return Relation(DIFFERENT if self.kind == EQUAL else EQUAL, self.expression)

    def reduced(self) -> Relation:
        """Return the same relation divided by the common factor of its terms: `128*s0 >= 300` becomes `s0 >= 3`."""
        terms, constant = linear_form(self.expression)
        if not terms:
            return self
        divisor = math.gcd(*(scale for _, scale in terms))
        if self.kind != NOT_NEGATIVE and constant % divisor:
            return Relation(self.kind, as_expr(1))  # a multiple of the divisor never equals a number that is not one
        expression = combine([(term, scale // divisor) for term, scale in terms], constant // divisor)
        return Relation(self.kind, _without_positive_factors(expression, self.kind))

    def substitute(self, replacements: Mapping[Var, Expr | int]) -> Relation:
        """Return the relation with symbols replaced."""
        expression = self.expression.substitute(replacements)
        return self if expression is self.expression else Relation(self.kind, expression)

    def holds(self, values: Mapping[Var, Any]) -> bool:
        """Return whether the relation holds where the symbols have these values."""
        return _HOLDS[self.kind](self.expression.evaluate(values))

    def constant(self) -> bool | None:
        """Return its truth value if that does not depend on any symbol, else None."""
        return _HOLDS[self.kind](self.expression.value) if type(self.expression) is Const else None

    def __str__(self) -> str:
        """Return Python source over the symbols' names without negative coefficients: `s0 >= 5`, `s0 == 2*s1`."""
        left, right = _sides(self.expression)
        if self.kind == NOT_NEGATIVE and not left.free_variables():
            return f"{right} <= {left}"
        return f"{left} {self.kind} {right}"


_HOLDS: dict[str, Callable[[int], bool]] = {
    EQUAL: lambda value: value == 0,
    DIFFERENT: lambda value: value != 0,
    NOT_NEGATIVE: lambda value: value >= 0,
}


def _without_positive_factors(expression: Expr, kind: str) -> Expr:
    """Return the expression divided by positive symbols common to all its terms, where `kind 0` stays equivalent."""
    terms, constant = linear_form(expression)
    # For integers with f > 0: f*g - 1 >= 0 says that g is positive, and so does g - 1 >= 0.
    if not terms or constant not in ((0, -1) if kind == NOT_NEGATIVE else (0,)):
        return expression
    for factor in set(factors_of(terms[0][0])).intersection(*(factors_of(term) for term, _ in terms)):
        least = bounds(factor)[0]
        if least is not None and least >= 1:
            return _without_positive_factors(exact_quotient(expression - constant, factor) + constant, kind)
    return expression


def _sides(expression: Expr) -> tuple[Expr, Expr]:
    """Return (left, right) with left - right == expression, the terms of negative sign on the right."""
    if type(expression) is not Sum:
        return expression, as_expr(0)
    left, right = as_expr(0), as_expr(0)
    for term, scale in expression.terms:
        left, right = (left + term * scale, right) if scale > 0 else (left, right - term * scale)
    if (left.free_variables() and expression.constant < 0) or not right.free_variables():
        return left, right - expression.constant
    return left + expression.constant, right


def equal(left: Expr, right: Expr) -> Relation:
    """Return `left == right`."""
    return Relation(EQUAL, left - right)


def different(left: Expr, right: Expr) -> Relation:
    """Return `left != right`."""
    return Relation(DIFFERENT, left - right)


def at_least(left: Expr, right: Expr) -> Relation:
    """Return `left >= right`."""
    return Relation(NOT_NEGATIVE, left - right)


def below(left: Expr, right: Expr) -> Relation:
    """Return `left < right`."""
    return Relation(NOT_NEGATIVE, right - left - 1)
