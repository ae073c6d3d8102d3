"""Sizes, strides and offsets in inductor: an int if it is known, else an `Expr` of size symbols.

In: ints, the `SymInt`s of fake tensors, expressions. Out: ints and expressions, and what is provable about them. Stage:
inductor, from lowering to code generation.
Boxes keep the SymInts of their fake tensors, because size rules are written for those; loops, layouts and index expressions
hold sizes made here. Two expressions are equal here only if they are the same expression. Sizes that are equal only for the
example count as different, so that choices made here need no guards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from rushlight.core.algebra import Const, Expr, Product, Var, as_expr, row_major_strides
from rushlight.core.algebra.nodes import linear_form
from rushlight.core.algebra.symbolic import exact_quotient as exact_quotient_of
from rushlight.core.strides import contiguous_strides
from rushlight.core.symbolic import SymInt

Size = int | Expr


class UnsupportedSize(NotImplementedError):
    """A size is symbolic where inductor needs a known one; the graph must be captured with fixed sizes."""


def as_size(value: int | SymInt | Expr) -> Size:
    """Return an int for a constant, else an expression."""
    if type(value) is int:
        return value
    expression = as_expr(value)
    return expression.value if type(expression) is Const else expression


def as_sizes(values: Iterable[int | SymInt | Expr]) -> tuple[Size, ...]:
    """Return `as_size` of each."""
    return tuple(map(as_size, values))


def hint(value: int | SymInt) -> int:
    """Return the example's value, for choices that affect only speed."""
    return value.hint if isinstance(value, SymInt) else value


def product(sizes: Iterable[int | SymInt | Expr]) -> Size:
    """Return the product of sizes."""
    return as_size(math.prod(as_sizes(sizes)))


def quotient(dividend: Size, divisor: Size) -> Size | None:
    """Return `dividend / divisor` if it provably leaves no remainder, else None."""
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor if divisor and dividend % divisor == 0 else None
    found = None if divisor == 0 else exact_quotient_of(as_expr(dividend), as_expr(divisor))
    return None if found is None else as_size(found)


def rounded_up(size: Size, step: int) -> Size:
    """Round up to a multiple of `step`."""
    return as_size((size + (step - 1)) // step * step)


def row_major(sizes: Sequence[Size]) -> tuple[Size, ...]:
    """Return the strides of a contiguous tensor."""
    if all(isinstance(size, int) for size in sizes):
        return contiguous_strides(tuple(sizes))
    return as_sizes(row_major_strides(sizes))


def stride_along(index: Expr, variable: Var) -> Size | None:
    """Return the growth of an index when `variable` grows by one; None if it is not a size."""
    plain = index.coefficient(variable)
    if plain is not None:
        return plain
    found: Size = 0
    for term, scale in linear_form(index)[0]:
        if variable in term.free_variables():
            rest = _without(term, variable)
            if rest is None:
                return None
            found = found + rest * scale
    return as_size(found)


def _without(term: Expr, variable: Var) -> Size | None:
    """Return the other factors of a product that contains `variable`; None unless all of them are sizes."""
    if term is variable:
        return 1
    if type(term) is not Product:
        return None
    others = [factor for factor in term.factors if factor is not variable]
    if len(others) != len(term.factors) - 1 or not all(map(is_size, others)):
        return None
    return math.prod(others)


def is_size(expression: Expr) -> bool:
    """Return whether an expression only contains size symbols, which are constant during a call."""
    return all(is_symbol(variable) for variable in expression.free_variables())


def is_symbol(variable: Var) -> bool:
    """Return whether a variable is a size symbol. Loop variables start at 0 and have an extent."""
    return variable.extent is None or variable.least != 0


def symbols_of(sizes: Iterable[Size]) -> set[Var]:
    """Return the variables that occur in sizes."""
    return set().union(*(size.free_variables() for size in sizes if isinstance(size, Expr)))


def evaluate(size: Size, values: Mapping[Var, int]) -> int:
    """Return a size for these values of the symbols."""
    return size if isinstance(size, int) else size.evaluate(values)


def known(value: int | SymInt, what: str) -> int:
    """Return an int that code generation needs as a constant; UnsupportedSize if it is symbolic."""
    size = as_size(value)
    if not isinstance(size, int):
        raise UnsupportedSize(f"{what} must be known when the code is made, but it is {size}")
    return size
