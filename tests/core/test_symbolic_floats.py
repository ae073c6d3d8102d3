"""Symbolic floats: Python's arithmetic with the sizes left open, and what fixes the sizes."""

from __future__ import annotations

import math
import operator

import pytest

from rushlight.core.symbolic import ShapeEnv, SymFloat, SymInt, sym_float, sym_sqrt


def sizes(*hints: int, keeps_floats: bool = True) -> tuple:
    environment = ShapeEnv(keeps_floats=keeps_floats)
    return environment, *(environment.create_symbol(hint, f"x.size({dim})", False) for dim, hint in enumerate(hints))


@pytest.mark.parametrize("function", [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod])
@pytest.mark.parametrize("number", [0.5, 3.0, 7.25])
def test_arithmetic_with_floats_stays_open(function, number):
    environment, n = sizes(6)
    for made, wanted in ((function(n, number), function(6, number)), (function(number, n), function(number, 6))):
        assert type(made) is SymFloat and isinstance(made, float) and made.hint == wanted
        assert function(made, n).hint == function(wanted, 6) and function(made, 2).hint == function(wanted, 2)
    assert not environment.guards


def test_quotients_and_powers_of_sizes_stay_open():
    environment, n, m = sizes(6, 4)
    found = [n / m, n / 4, 1 / n, n**-0.5, n**-1, 2.0**n, sym_float(n), sym_sqrt(n), -(n / m), abs(n / m), (n / m) ** 0.5]
    assert [each.hint for each in found] == [
        1.5, 1.5, 1 / 6, 6**-0.5, 6**-1, 64.0, 6.0, math.sqrt(6), -1.5, 1.5, 1.5**0.5
    ]  # fmt: skip
    assert not environment.guards


def test_rounded_quotients_are_sizes():
    environment, n, m = sizes(7, 4)
    found = [math.floor(n * 0.5), math.ceil(n / 2), math.trunc(n / m), math.floor(n * 0.75), math.ceil(sym_float(n))]
    assert all(type(each) is SymInt for each in found) and [each.hint for each in found] == [3, 4, 1, 5, 7]
    assert math.floor(n * 0.7) == 4, "no dyadic fraction: the float product of the example's size decides"
    assert [str(guard.relation) for guard in environment.relations()] == ["s0 == 7"]


@pytest.mark.parametrize("use", [float, bool, int, lambda number: number > 1.0, lambda number: f"{number:.2f}", round, math.sin])
def test_other_uses_fix_the_sizes(use):
    environment, n = sizes(6)
    assert use(n * 0.5) == use(3.0)
    assert [str(guard.relation) for guard in environment.relations()] == ["s0 == 6"]


def test_complex_results_fix_the_sizes():
    environment, n = sizes(6)
    assert (n - 10) ** 0.5 == (-4) ** 0.5 and [str(guard.relation) for guard in environment.relations()] == ["s0 == 6"]


def test_other_environments_compute_with_the_example():
    environment, n = sizes(6, keeps_floats=False)
    assert type(n * 0.5) is float and [str(guard.relation) for guard in environment.relations()] == ["s0 == 6"]


def test_errors_are_those_of_the_example():
    _, n = sizes(6)
    with pytest.raises(ZeroDivisionError):
        n / 0
    with pytest.raises(TypeError):
        n * 0.5 + "text"


@pytest.mark.parametrize(
    "compare, guard",
    [
        (lambda n: n > 2.5, "s0 >= 3"), (lambda n: n >= 2.5, "s0 >= 3"), (lambda n: n < 8.5, "s0 <= 8"), (lambda n: n <= 8.5, "s0 <= 8"),
        (lambda n: n == 6.0, "s0 == 6"), (lambda n: n != 2.0, "s0 != 2"),
    ],
)  # fmt: skip
def test_comparisons_of_sizes_with_floats_are_guards_on_integers(compare, guard):
    environment, n = sizes(6)
    assert compare(n)
    assert [str(found.relation) for found in environment.relations()] == [guard]


def test_comparisons_that_hold_for_all_integers_need_no_guard():
    environment, n = sizes(6)
    assert n < math.inf and n != 2.5 and not n == 2.5 and not n > math.nan and n > -math.inf
    assert not environment.guards
