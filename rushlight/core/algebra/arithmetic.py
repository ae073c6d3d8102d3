"""Sums, products, and division by integers, each built straight into canonical form.

In: canonical expressions. Out: a canonical expression. Stage: inductor, lowering.

There is no rewriting loop over whole trees: every function looks at the top of its operands once and relies on the
operands being canonical. With e, f expressions and a, b, d, g positive integers, the rules are

    (d*e + f) // d            -> e + f // d            (d*e + f) % d      -> f % d
    e // d, 0 <= e < d        -> 0                     e % d, 0 <= e < d  -> e
    (g*e + f) // (g*b)        -> e // b                where 0 <= f < g
    (g*e + f) % (g*b)         -> g*(e % b) + f         where 0 <= f < g
    (e // a + f) // b         -> (e + a*f) // (a*b)
    (e % (a*b)) // a          -> (e // a) % b          (e % (a*b)) % a    -> e % a
    d*(e // d) + e % d        -> e                     also scaled by a common factor
    a*((e // a + f) % b) + e % a  ->  (e + a*f) % (a*b)

A dividend whose least value is known is shifted by a multiple of the divisor until that value lies in [0, divisor), so
that generated code divides nonnegative numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from rushlight.core.algebra.nodes import Const, Expr, FloorDiv, Mod, Product, Sum, Var, linear_form
from rushlight.core.algebra.ranges import bounds, terms_range

# One graph repeats operations many times. The memo is bounded, so that a long-lived process does not grow.
memoised = lru_cache(maxsize=1 << 14)

constant = memoised(Const)
ZERO = constant(0)
ONE = constant(1)

_FREE_OF_REMAINDERS = {Var, FloorDiv}


def combine(parts: Iterable[tuple[Expr, int]], addend: int = 0) -> Expr:
    """Return `sum(scale * expression for expression, scale in parts) + addend`."""
    table: dict[Expr, int] = {}
    for expression, scale in parts:
        terms, part_constant = linear_form(expression)
        addend += scale * part_constant
        for term, coefficient in terms:
            table[term] = table.get(term, 0) + scale * coefficient
    return _from_table(table, addend)


@memoised
def add(left: Expr, right: Expr) -> Expr:
    """Return `left + right`."""
    return combine(((left, 1), (right, 1)))


@memoised
def multiply(left: Expr, right: Expr) -> Expr:
    """Return `left * right`, expanded into a sum of monomials."""
    if type(right) is Const:
        return combine(((left, right.value),))
    if type(left) is Const:
        return combine(((right, left.value),))
    left_terms, left_constant = linear_form(left)
    right_terms, right_constant = linear_form(right)
    parts = [(_monomial(a, b), c * d) for a, c in left_terms for b, d in right_terms]
    parts += [(term, scale * right_constant) for term, scale in left_terms]
    parts += [(term, scale * left_constant) for term, scale in right_terms]
    return combine(parts, left_constant * right_constant)


def factors_of(term: Expr) -> tuple[Expr, ...]:
    """Return the atoms whose product a term is."""
    return term.factors if type(term) is Product else (term,)


def product_of(factors: Iterable[Expr]) -> Expr:
    """Return the monomial with the given atoms as factors; 1 if there are none."""
    ordered = tuple(sorted(factors))
    if len(ordered) > 1:
        return Product(ordered)
    return ordered[0] if ordered else ONE


def _monomial(left: Expr, right: Expr) -> Expr:
    return product_of(factors_of(left) + factors_of(right))


def _term_order(item: tuple[Expr, int]) -> tuple:
    return item[0].order


def _from_table(table: dict[Expr, int], addend: int) -> Expr:
    """Return the canonical sum of the table's terms. Consumes the table."""
    if len(table) > 1 and not _FREE_OF_REMAINDERS.issuperset(map(type, table)):
        addend += _recombine(table)
    terms = [item for item in table.items() if item[1]]
    if not terms:
        return constant(addend)
    if len(terms) == 1:
        if addend == 0 and terms[0][1] == 1:
            return terms[0][0]
    else:
        terms.sort(key=_term_order)
    return Sum(tuple(terms), addend)


# Recombine remainders with their quotients


def _recombine(table: dict[Expr, int]) -> int:
    """Fold remainders with matching quotients or remainders, in place; returns what this adds to the constant.

    It terminates: each fold removes two terms and adds only terms of a dividend, which are less deeply nested.
    """
    addend = 0
    pending = True
    while pending:
        pending = False
        for term in [term for term in table if _remainder_in(term) is not None]:
            scale = table.get(term, 0)
            folded = scale and (_fold_quotient(table, term, scale) or _fold_remainder(table, term, scale))
            if folded:
                pending = True
                terms, part = linear_form(folded)
                addend += scale * part
                for new_term, coefficient in terms:
                    table[new_term] = table.get(new_term, 0) + scale * coefficient
    return addend


def _remainder_in(term: Expr) -> Mod | None:
    if type(term) is Mod:
        return term
    if type(term) is Product:
        return next((factor for factor in term.factors if type(factor) is Mod), None)
    return None


def _fold_quotient(table: dict[Expr, int], term: Expr, scale: int) -> Expr | None:
    """Rewrite `rest*(e % d)` with `rest*d*(e // d)` to `rest*e`, and remove both from the table."""
    remainder = _remainder_in(term)
    partner = multiply(remainder.divisor, remainder.quotient)
    rest = ONE
    if term is not remainder:
        others = list(term.factors)
        others.remove(remainder)
        rest = product_of(others)
        partner = multiply(rest, partner)
    terms, addend = linear_form(partner)
    if addend or len(terms) != 1 or table.get(terms[0][0]) != scale * terms[0][1]:
        return None
    del table[term], table[terms[0][0]]
    return multiply(rest, remainder.dividend)


def _fold_remainder(table: dict[Expr, int], term: Expr, scale: int) -> Expr | None:
    """Rewrite `e % a` with `a*((e // a + f) % b)` to `(e + a*f) % (a*b)`, and remove both from the table."""
    if type(term) is not Mod or type(term.divisor) is not Const:
        return None
    step = term.divisor.value
    for other, other_scale in table.items():
        if other_scale == scale * step and type(other) is Mod and type(other.divisor) is Const:
            terms, _ = linear_form(other.dividend)
            if (term.quotient, 1) in terms:
                beside = combine(((other.dividend, 1), (term.quotient, -1)))
                del table[term], table[other]
                return remainder_by(combine(((term.dividend, 1), (beside, step))), step * other.divisor.value)
    return None


# Division by an integer


@memoised
def divide_by(expression: Expr, divisor: int) -> Expr:
    """Return `expression // divisor`, divisor >= 1."""
    whole, rest = _reduce(expression, divisor)
    if _fits(rest, divisor):
        return whole
    return combine(((whole, 1), (_divide_rest(rest, divisor), 1)))


@memoised
def remainder_by(expression: Expr, divisor: int) -> Expr:
    """Return `expression % divisor`, divisor >= 1."""
    _, rest = _reduce(expression, divisor)
    if _fits(rest, divisor):
        return rest
    split = _split_by_factor(rest, divisor)
    if split is not None:
        factor, outer, inner = split
        return combine(((remainder_by(outer, divisor // factor), factor), (inner, 1)))
    if type(rest) is Mod and _is_multiple(rest.divisor, divisor):
        return remainder_by(rest.dividend, divisor)
    return Mod(rest, constant(divisor), _divide_rest(rest, divisor))


def _reduce(expression: Expr, divisor: int) -> tuple[Expr, Expr]:
    """Return (whole, rest) with expression == divisor * whole + rest and no term of rest a multiple of the divisor."""
    terms, addend = linear_form(expression)
    multiples = [(term, scale // divisor) for term, scale in terms if scale % divisor == 0]
    if multiples:
        terms = tuple(item for item in terms if item[1] % divisor)
    low = terms_range(terms)[0]
    # Ignore a positive minimum of the symbol: `s0 // 2` then has the same form whatever the minimum of s0 is.
    shift = (addend if low is None else addend + min(low, 0)) // divisor
    if not multiples and not shift:
        return ZERO, expression
    return combine(multiples, shift), combine(terms, addend - shift * divisor)


def _fits(expression: Expr, limit: int) -> bool:
    low, high = bounds(expression)
    return low is not None and high is not None and 0 <= low and high < limit


def _divide_rest(rest: Expr, divisor: int) -> Expr:
    """Return `rest // divisor` for a rest that `_reduce` left and that does not fit below the divisor."""
    split = _split_by_factor(rest, divisor)
    if split is not None:
        return divide_by(split[1], divisor // split[0])
    if type(rest) is Mod and _is_multiple(rest.divisor, divisor):
        return remainder_by(divide_by(rest.dividend, divisor), rest.divisor.value // divisor)
    inner = _find_only_quotient(rest)
    if inner is None:
        return FloorDiv(rest, constant(divisor))
    beside = multiply(combine(((rest, 1), (inner, -1))), inner.divisor)
    dividend = add(inner.dividend, beside)
    if type(inner.divisor) is Const:
        return divide_by(dividend, inner.divisor.value * divisor)
    return FloorDiv(dividend, multiply(inner.divisor, constant(divisor)))


def _is_multiple(modulus: Expr, divisor: int) -> bool:
    return type(modulus) is Const and modulus.value % divisor == 0


def _find_only_quotient(rest: Expr) -> FloorDiv | None:
    """Return the FloorDiv with coefficient 1 among the terms, if there is exactly one FloorDiv."""
    quotients = [item for item in linear_form(rest)[0] if type(item[0]) is FloorDiv]
    return quotients[0][0] if len(quotients) == 1 and quotients[0][1] == 1 else None


def _split_by_factor(rest: Expr, divisor: int) -> tuple[int, Expr, Expr] | None:
    """Return (g, outer, inner) with rest == g * outer + inner, g a divisor of `divisor`, and 0 <= inner < g; or None."""
    terms, addend = linear_form(rest)
    for factor in _common_factors(terms, divisor):
        inner = tuple(item for item in terms if item[1] % factor)
        low, high = terms_range(inner)
        if low is None or high is None:
            continue
        shift = (low + addend) // factor
        remaining = addend - shift * factor
        if high + remaining < factor:
            outer = combine([(term, scale // factor) for term, scale in terms if scale % factor == 0], shift)
            return factor, outer, combine(inner, remaining)
    return None


def _common_factors(terms: tuple[tuple[Expr, int], ...], divisor: int) -> list[int]:
    """Return candidate factors shared by the divisor and some coefficients, largest first."""
    shared = sorted({math.gcd(scale, divisor) for _, scale in terms} - {1}, reverse=True)
    candidates = set(shared)
    running = divisor
    for factor in shared:
        running = math.gcd(running, factor)
        candidates.add(running)
    return sorted(candidates - {1}, reverse=True)
