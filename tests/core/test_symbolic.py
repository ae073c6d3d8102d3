"""Symbolic integers: arithmetic as Python's, answers that hold for every size the guards admit, and guards as text."""

from __future__ import annotations

import math
import operator
import random

import pytest

from rushlight.core.algebra import Var, as_expr
from rushlight.core.symbolic import ShapeEnv, SymBool, SymInt, UnguardedSizeError

OPERATORS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def environment_of(*hints: int, share: bool = False) -> tuple:
    environment = ShapeEnv()
    return environment, *(environment.create_symbol(hint, f"x.size({dim})", share) for dim, hint in enumerate(hints))


def guards(environment: ShapeEnv) -> list[str]:
    return [str(guard.relation) for guard in environment.relations()]


# Symbols


def test_sizes_zero_and_one_stay_plain_and_equal_sizes_share_a_symbol():
    environment, zero, one, first, second, other = environment_of(0, 1, 8, 8, 5, share=True)
    assert (zero, one) == (0, 1) and type(zero) is type(one) is int
    assert first is second and repr(first) == "s0" and repr(other) == "s1"
    assert [(str(binding.symbol), binding.source) for binding in environment.bindings] == [
        ("s0", "x.size(2)"), ("s0", "x.size(3)"), ("s1", "x.size(4)")
    ]  # fmt: skip


def test_a_hint_outside_its_range_is_refused():
    with pytest.raises(ValueError, match="x is 9, expected a value from 2 to 8"):
        ShapeEnv().create_symbol(9, "x", most=8)


# Arithmetic


def test_arithmetic_is_symbolic_until_nothing_symbolic_is_left():
    _, size, other = environment_of(8, 6)
    assert str(3 * size + other - 1) == "3*s0 + s1 - 1" and type(size * 0) is int
    assert str(size * 128 // 2) == "64*s0" and (4 * size) % 4 == 0
    assert (size + 2) - size == 2 and type((size + 2) - size) is int
    assert (size * 3).hint == 24 and str(math.prod((size, other, 5))) == "5*s0*s1"
    assert str(sum([size, other, 1])) == "s0 + s1 + 1" and str(divmod(size * 4 + 1, 4)) == "(s0, 1)"
    assert str(size**2) == "s0*s0" and str(max(size, 1)) == "s0" and min(size, 1) == 1
    assert str(-size) == "-s0" and abs(size) is size and round(size) is size
    assert as_expr(size + 1) == as_expr(size) + 1


def test_random_arithmetic_has_the_value_of_the_same_on_integers():
    choose = random.Random(0)
    for _ in range(300):
        environment, *symbols = environment_of(7, 12, 5)
        values = [(symbol, symbol.hint) for symbol in symbols] + [(number, number) for number in (1, 2, 3, 10)]
        for _ in range(6):
            operation = choose.choice(OPERATORS)
            (left, left_value), (right, right_value) = choose.sample(values, 2)
            if right_value > 0 or operation not in (operator.floordiv, operator.mod):
                result = operation(left, right)
                values.append((result, operation(left_value, right_value)))
                assert (result.hint if isinstance(result, SymInt) else result) == values[-1][1]


def test_what_has_no_symbolic_form_uses_the_example_and_fixes_it():
    for compute in (lambda n: n / 2, lambda n: n << 1, lambda n: math.sqrt(n), lambda n: list(range(n)), lambda n: n * 0.5,
                    lambda n: 2**n, lambda n: n & 3, lambda n: [10, 11, 12, 13, 14][n]):  # fmt: skip
        environment, size = environment_of(4)
        assert compute(size) == compute(4)
        assert guards(environment) == ["s0 == 4"] and size == 4


def test_a_negative_divisor_uses_the_example():
    environment, size = environment_of(7)
    assert size // -2 == -4 and guards(environment) == ["s0 == 7"]
    environment, size, other = environment_of(7, 3)
    with pytest.raises(ZeroDivisionError):
        size // (other - 3)
    assert "s1 == 3" in guards(environment)


# Questions and guards


def test_what_ranges_prove_needs_no_guard():
    environment, size, other = environment_of(8, 6)
    assert size >= 2 and size != 1 and size + 1 > size and 0 not in (size, other) and size * other > 0 and 2 * size != 3
    assert not size == 0 and not size * 128 < 128 and bool(size)
    assert guards(environment) == []


def test_a_question_is_decided_by_the_example_and_guarded_either_way():
    environment, size = environment_of(8)
    assert size > 4 and not size > 100 and size != 12
    assert guards(environment) == ["s0 >= 5", "s0 <= 100", "s0 != 12"]
    assert size >= 5 and size > 3 and not size > 200 and size != 12
    assert len(guards(environment)) == 3


def test_a_comparison_asks_nothing_before_its_truth_is_needed():
    environment, size = environment_of(8)
    question = size > 4
    assert isinstance(question, SymBool) and guards(environment) == [] and repr(question) == "s0 >= 5"
    assert question and guards(environment) == ["s0 >= 5"]


def test_equalities_replace_symbols_in_every_integer():
    environment, size, double, third = environment_of(8, 16, 8)
    later = double + third
    assert double == 2 * size and third == size
    assert str(later) == "3*s0" and str(double) == "2*s0"
    assert guards(environment) == ["s1 == 2*s0", "s2 == s0"]
    assert int(size) == 8 and later.expr == 24
    assert guards(environment) == ["s1 == 16", "s2 == 8", "s0 == 8"]


def test_an_equality_without_a_symbol_to_replace_is_remembered():
    environment, size = environment_of(8)
    assert size % 4 == 0 and size % 4 == 0
    assert guards(environment) == ["s0 % 4 == 0"]


def test_a_replaced_symbol_hands_its_range_on():
    environment = ShapeEnv()
    wide = environment.create_symbol(20, "wide", share=False)
    narrow = environment.create_symbol(20, "narrow", share=False, least=10, most=30)
    assert wide == narrow
    assert guards(environment) == ["s1 == s0", "s0 >= 10", "s0 <= 30"]
    assert wide >= 10


def test_guards_name_the_line_that_asked():
    environment = ShapeEnv(locate=lambda: "model.py:3")
    assert environment.create_symbol(5, "x") == 5
    assert [guard.location for guard in environment.relations()] == ["model.py:3"]


def test_the_guards_hold_exactly_where_every_answer_is_the_same():
    choose = random.Random(1)
    names = [Var("s0", None, 2), Var("s1", None, 2)]
    for _ in range(200):
        environment, *sizes = environment_of(choose.randrange(2, 12), choose.randrange(2, 12))
        questions = []
        for _ in range(3):
            scale, shift, compare = choose.randrange(1, 4), choose.randrange(-3, 8), choose.choice(COMPARISONS)
            questions.append((compare, scale, shift))
        ask = lambda a, b, questions=questions: [bool(compare(scale * a, b + shift)) for compare, scale, shift in questions]  # noqa: E731
        expected = ask(*sizes)
        relations = [guard.relation for guard in environment.relations()]
        for first in range(2, 14):
            for second in range(2, 14):
                admitted = all(relation.holds(dict(zip(names, (first, second), strict=True))) for relation in relations)
                assert admitted == (ask(first, second) == expected), (questions, first, second, guards(environment))


def test_a_frozen_environment_answers_what_it_can_prove_only():
    environment, size = environment_of(8)
    assert size > 4
    environment.freeze()
    assert size > 3
    with pytest.raises(UnguardedSizeError, match="s0 >= 8 was assumed"):
        bool(size > 7)


# As keys


def test_symbols_of_different_captures_are_never_equal_keys():
    _, first = environment_of(8)
    _, second = environment_of(8)
    assert first != second and len({first, second}) == 2
    environment, size = environment_of(8)
    assert {size: 1}[environment.integer(size.expr)] == 1 and guards(environment) == []


def test_a_symbolic_integer_is_not_pickled():
    with pytest.raises(TypeError, match="belongs to a capture"):
        environment_of(8)[1].__reduce__()
