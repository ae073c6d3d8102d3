"""Integer ranges of index expressions, by interval arithmetic.

In: an expression. Out: `(low, high)`, both inclusive, each None where no limit is known; memoised on the node.
Stage: inductor, lowering; the rules in `arithmetic.py` and the choice of C++ division in `printing.py` rest on it.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.algebra.nodes import Const, Expr, FloorDiv, Mod, Product, Sum, Var

Range = tuple[int | None, int | None]


def bounds(expression: Expr) -> Range:
    """Return the inclusive range `(low, high)` that contains every value of the expression; None for an unknown end."""
    found = expression._bounds
    if found is None:
        found = expression._bounds = _RANGE_OF[type(expression)](expression)
    return found


def is_nonnegative(expression: Expr) -> bool:
    """Return whether the expression is provably >= 0 at every point."""
    low = bounds(expression)[0]
    return low is not None and low >= 0


def terms_range(terms: tuple[tuple[Expr, int], ...]) -> Range:
    """Return the range of `sum(coefficient * term)`."""
    low: int | None = 0
    high: int | None = 0
    for term, scale in terms:
        first, last = bounds(term)
        if scale < 0:
            first, last = last, first
        low = None if low is None or first is None else low + scale * first
        high = None if high is None or last is None else high + scale * last
    return low, high


def _variable_range(variable: Var) -> Range:
    extent = variable.extent
    if isinstance(extent, Expr):
        extent = bounds(extent)[1]
    return variable.least, None if extent is None else extent - 1


def _product_range(product: Product) -> Range:
    low: int | None = 1
    high: int | None = 1
    for factor in product.factors:
        low, high = _multiply_ranges((low, high), bounds(factor))
    return low, high


def _multiply_ranges(left: Range, right: Range) -> Range:
    if None not in left and None not in right:
        corners = [a * b for a in left for b in right]
        return min(corners), max(corners)
    if None not in (left[0], right[0]) and left[0] >= 0 and right[0] >= 0:
        return left[0] * right[0], None
    return None, None


def _quotient_range(node: FloorDiv) -> Range:
    low, high = bounds(node.dividend)
    if type(node.divisor) is Const:
        divisor = node.divisor.value
        return None if low is None else low // divisor, None if high is None else high // divisor
    # Divisors are positive. Dividing moves a value towards zero, and a negative one to -1 at most.
    smallest = max(1, bounds(node.divisor)[0] or 1)
    low = None if low is None else min(0, low // smallest)
    return low, None if high is None else max(0, high // smallest)


def _remainder_range(node: Mod) -> Range:
    divisor_high = bounds(node.divisor)[1]
    high = None if divisor_high is None else divisor_high - 1
    low, dividend_high = bounds(node.dividend)
    if dividend_high is not None and low is not None and low >= 0 and (high is None or dividend_high < high):
        high = dividend_high
    return 0, high


def _sum_range(node: Sum) -> Range:
    low, high = terms_range(node.terms)
    return None if low is None else low + node.constant, None if high is None else high + node.constant


_RANGE_OF: dict[type, Callable[..., Range]] = {
    Const: lambda node: (node.value, node.value),
    Var: _variable_range,
    Product: _product_range,
    FloorDiv: _quotient_range,
    Mod: _remainder_range,
    Sum: _sum_range,
}
