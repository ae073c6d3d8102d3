"""Python's operators on index expressions, and substitution.

In: expressions and plain integers. Out: canonical expressions. Stage: inductor, lowering.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from rushlight.core.algebra.arithmetic import ONE, add, combine, constant, multiply
from rushlight.core.algebra.nodes import Expr, FloorDiv, Mod, Product, Sum, Var
from rushlight.core.algebra.symbolic import floor_divide, modulo


def as_expr(value: Expr | int) -> Expr:
    """Return `value` as an expression: itself, the expression of a symbolic integer, or a Const. TypeError for anything
    that is no integer.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(expression := getattr(value, "expr", None), Expr):
        return expression  # must be tried before `__index__`, which specializes a symbolic integer
    try:
        return constant(operator.index(value))
    except TypeError:
        raise TypeError(f"an index expression is built from integers and expressions, got {value!r} "
                        f"of type {type(value).__name__}") from None


def subtract(left: Expr, right: Expr) -> Expr:
    """Return `left - right`."""
    return combine(((left, 1), (right, -1)))


def substitute(expression: Expr, replacements: Mapping[Var, Expr | int]) -> Expr:
    """Return the expression with variables replaced, all at once, and simplified again.

    `replacements` maps a Var to an expression or integer; variables that it does not name stay.
    """
    if expression.free_variables().isdisjoint(replacements):
        return expression
    return _REBUILD[type(expression)](expression, replacements)


def _rebuild_sum(node: Sum, replacements: Mapping[Var, Expr | int]) -> Expr:
    return combine([(substitute(term, replacements), scale) for term, scale in node.terms], node.constant)


def _rebuild_product(node: Product, replacements: Mapping[Var, Expr | int]) -> Expr:
    return reduce(multiply, (substitute(factor, replacements) for factor in node.factors), ONE)


def _rebuild_quotient(node: FloorDiv, replacements: Mapping[Var, Expr | int]) -> Expr:
    return floor_divide(substitute(node.dividend, replacements), substitute(node.divisor, replacements))


def _rebuild_remainder(node: Mod, replacements: Mapping[Var, Expr | int]) -> Expr:
    return modulo(substitute(node.dividend, replacements), substitute(node.divisor, replacements))


_REBUILD: dict[type, Callable[..., Expr]] = {
    Var: lambda node, replacements: as_expr(replacements[node]),
    Sum: _rebuild_sum,
    Product: _rebuild_product,
    FloorDiv: _rebuild_quotient,
    Mod: _rebuild_remainder,
}


def _attach(name: str, rule: Callable[[Expr, Expr], Expr]) -> None:
    """Give Expr the binary operator `name` and its reflected form."""

    def forward(self: Expr, other: Any) -> Expr:
        if type(other) is int:
            return rule(self, constant(other))
        if isinstance(other, Expr):
            return rule(self, other)
        return rule(self, as_expr(other)) if hasattr(other, "__index__") else NotImplemented

    def reflected(self: Expr, other: Any) -> Expr:
        return rule(as_expr(other), self) if hasattr(other, "__index__") else NotImplemented

    setattr(Expr, f"__{name}__", forward)
    setattr(Expr, f"__r{name}__", reflected)


for _name, _rule in (("add", add), ("sub", subtract), ("mul", multiply), ("floordiv", floor_divide), ("mod", modulo)):
    _attach(_name, _rule)
Expr.__neg__ = lambda self: combine(((self, -1),))
Expr.substitute = substitute

