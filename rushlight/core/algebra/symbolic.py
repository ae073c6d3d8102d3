"""Division of index expressions by anything: integers, size symbols, and sums or products of these.

In: canonical expressions. Out: a canonical expression. Stage: inductor, lowering, with dynamic shapes.

A divisor is positive by contract. Division by a symbolic divisor takes out the multiples of the divisor's leading
monomial and drops the rest where `rest < divisor` can be proved from the variables' (possibly symbolic) extents.
"""

from __future__ import annotations

from rushlight.core.algebra.arithmetic import (
    ONE,
    ZERO,
    combine,
    constant,
    divide_by,
    factors_of,
    memoised,
    multiply,
    product_of,
    remainder_by,
)
from rushlight.core.algebra.nodes import Const, Expr, FloorDiv, Mod, Var, linear_form
from rushlight.core.algebra.ranges import bounds, is_nonnegative


def floor_divide(dividend: Expr, divisor: Expr) -> Expr:
    """Return `dividend // divisor`. ZeroDivisionError or ValueError for a divisor known to be zero or negative."""
    if type(divisor) is Const:
        return divide_by(dividend, _require_positive(divisor.value, dividend))
    return _divide(dividend, divisor)


def modulo(dividend: Expr, divisor: Expr) -> Expr:
    """Return `dividend % divisor`. ZeroDivisionError or ValueError for a divisor known to be zero or negative."""
    if type(divisor) is Const:
        return remainder_by(dividend, _require_positive(divisor.value, dividend))
    return _remainder(dividend, divisor)


def _require_positive(divisor: int, dividend: Expr) -> int:
    if divisor == 0:
        raise ZeroDivisionError(f"index expression {dividend} divided by zero; the divisor must be a positive size")
    if divisor < 0:
        raise ValueError(f"index expression {dividend} divided by {divisor}; the divisor must be a positive size")
    return divisor


@memoised
def _divide(dividend: Expr, divisor: Expr) -> Expr:
    whole, rest = _reduce(dividend, divisor)
    if is_below(rest, divisor):
        return whole
    return combine(((whole, 1), (_divide_rest(rest, divisor), 1)))


@memoised
def _remainder(dividend: Expr, divisor: Expr) -> Expr:
    _, rest = _reduce(dividend, divisor)
    if is_below(rest, divisor):
        return rest
    if type(rest) is Mod and exact_quotient(rest.divisor, divisor) is not None:
        return modulo(rest.dividend, divisor)
    return Mod(rest, divisor, _divide_rest(rest, divisor))


def _reduce(dividend: Expr, divisor: Expr) -> tuple[Expr, Expr]:
    """Return (whole, rest) with dividend == divisor * whole + rest.

    For a divisor of several terms the step is taken only where it finishes the division. Elsewhere it would only make the
    dividend longer.
    """
    whole, rest = _polynomial_step(dividend, divisor)
    terms, addend = linear_form(divisor)
    if len(terms) + bool(addend) > 1 and not is_below(rest, divisor):
        return ZERO, dividend
    return whole, rest


def _divide_rest(rest: Expr, divisor: Expr) -> Expr:
    if type(rest) is FloorDiv:
        return floor_divide(rest.dividend, multiply(rest.divisor, divisor))
    if type(rest) is Mod:
        factor = exact_quotient(rest.divisor, divisor)
        if factor is not None:
            return modulo(floor_divide(rest.dividend, divisor), factor)
    return FloorDiv(rest, divisor)


def exact_quotient(dividend: Expr, divisor: Expr) -> Expr | None:
    """Return `dividend / divisor` where that is provably an integer expression, else None."""
    if type(divisor) is Const:
        return divide_by(dividend, divisor.value) if dividend.divisible_by(divisor.value) else None
    whole, rest = _polynomial_step(dividend, divisor)
    return whole if rest is ZERO else None


def _polynomial_step(dividend: Expr, divisor: Expr) -> tuple[Expr, Expr]:
    """Return one step of polynomial division by the divisor's leading monomial."""
    lead, lead_scale = max(linear_form(divisor)[0], key=lambda item: (len(factors_of(item[0])), item[0].order))
    parts = []
    for term, scale in linear_form(dividend)[0]:
        quotient = _monomial_quotient(term, lead) if scale % lead_scale == 0 else None
        if quotient is not None:
            parts.append((quotient, scale // lead_scale))
    if not parts:
        return ZERO, dividend
    whole = combine(parts)
    return whole, combine(((dividend, 1), (multiply(whole, divisor), -1)))


def _monomial_quotient(term: Expr, divisor: Expr) -> Expr | None:
    factors = list(factors_of(term))
    for factor in factors_of(divisor):
        if factor not in factors:
            return None
        factors.remove(factor)
    return product_of(factors)


# Prove inequalities with symbolic extents


def is_below(expression: Expr, limit: Expr) -> bool:
    """Return whether `0 <= expression < limit` is provable at every point, for a positive limit."""
    if expression is ZERO:
        return True
    if not is_nonnegative(expression):
        return False
    gap = bounds(combine(((limit, 1), (_upper_bound(expression), -1))))[0]
    return gap is not None and gap >= 1


def _upper_bound(expression: Expr) -> Expr:
    """Return an expression of size symbols that the given one never exceeds (variables without a known end stay)."""
    terms, addend = linear_form(expression)
    return combine([(_extreme_of_term(term, largest=scale > 0), scale) for term, scale in terms], addend)


def _extreme_of_term(term: Expr, largest: bool) -> Expr:
    factors = factors_of(term)
    if not all(is_nonnegative(factor) for factor in factors):
        return term
    if not largest:
        only_sizes = all(type(factor) is Var and factor.extent is None for factor in factors)
        return term if only_sizes else constant(bounds(term)[0])
    found = ONE
    for factor in factors:
        found = multiply(found, _last_value(factor))
    return found


def _last_value(atom: Expr) -> Expr:
    if type(atom) is Var and isinstance(atom.extent, Expr):
        return combine(((atom.extent, 1),), -1)
    if type(atom) is Mod:
        return combine(((atom.divisor, 1),), -1)
    high = bounds(atom)[1]
    return atom if high is None else constant(high)
