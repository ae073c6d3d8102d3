"""Guards on open sizes: postfix code of expressions, what it reads, and numbers that are too large for it."""

from __future__ import annotations

import random

import pytest

import rushlight as torch
from rushlight._C import GuardTree
from rushlight.core.algebra import Var, as_expr
from rushlight.core.algebra.postfix import STACK_DEPTH, to_postfix
from rushlight.core.symbolic.relations import Relation, at_least, below, different, equal
from rushlight.dynamo.dynamic import Assumption, SizeOf
from rushlight.dynamo.frames import debug_cache_entries
from rushlight.dynamo.guard_tree import TreeBuilder, has_native_form
from rushlight.dynamo.sources import Item, Local

X, Y = Local("x"), Local("y")
A, B = Var("a", None, None), Var("b", None, None)


def tree(*relations: Relation, a=X, b=Y, exact=None):
    """A tree over `x` and `y`, whose relations are about `a` and `b`, two ints of the frame unless it is said otherwise."""
    made = [Assumption(relation, X, {A: a, B: b}) for relation in relations]
    assert all(map(has_native_form, made))
    return GuardTree(*TreeBuilder(("x", "y"), {}).build([], None, made, exact or (lambda *values: 1 / 0)))


def holds(made, x, y=0):
    return made(x, y, {}, None)


def random_expression(generator: random.Random, depth: int):
    if depth == 0 or generator.random() < 0.2:
        return generator.choice([A, B, as_expr(generator.randint(-9, 9))])
    one, other = random_expression(generator, depth - 1), random_expression(generator, depth - 1)
    way = generator.randrange(5)
    if way < 2:
        return one + other if way else one - other
    if way == 2:
        return one * other
    divisor = generator.randint(1, 7)
    return one // divisor if way == 3 else one % divisor


@pytest.mark.parametrize("seed", range(100))
def test_code_has_the_value_of_its_expression(seed):
    generator = random.Random(seed)
    expression = random_expression(generator, 3)
    for _ in range(5):
        a, b = generator.randint(-50, 50), generator.randint(-50, 50)
        value = expression.evaluate({A: a, B: b})
        assert holds(tree(equal(expression, as_expr(value))), a, b)
        assert not holds(tree(different(expression, as_expr(value))), a, b)
        assert not holds(tree(equal(expression, as_expr(value + 1))), a, b)
        assert holds(tree(at_least(expression, as_expr(value))), a, b)
        assert not holds(tree(below(expression, as_expr(value))), a, b)


def test_sizes_and_strides_are_read():
    made = tree(equal(A, 3 * B), a=SizeOf(X, "size", 0), b=SizeOf(X, "stride", 1))
    assert holds(made, torch.ones(3, 2)) and holds(made, torch.ones(6, 5)[:, ::2])
    assert not holds(made, torch.ones(6, 2))


@pytest.mark.parametrize("value", [1, None, [1, 2], torch.ones(()), torch.ones(4)])
def test_what_has_no_such_size_does_not_hold(value):
    assert not holds(tree(at_least(A, as_expr(0)), a=SizeOf(X, "size", 1)), value)


@pytest.mark.parametrize("value", [1.0, "1", None, torch.ones(())])
def test_what_is_no_int_does_not_hold(value):
    assert not holds(tree(at_least(A, as_expr(0))), value)


def test_a_place_that_there_is_not_does_not_hold():
    assert not holds(tree(at_least(A, as_expr(0)), a=Item(X, 3)), [1, 2])


def test_numbers_that_are_too_large_are_left_to_python():
    asked = []

    def exact(x, y, *rest):
        asked.append((x, y))
        return x * y > 0

    made = tree(at_least(A * B, as_expr(1)), exact=exact)
    assert holds(made, 3, 4) and not asked
    assert holds(made, 10**30, 4) and holds(made, 1 << 62, 4) and not holds(made, 1 << 62, -4)
    assert asked == [(10**30, 4), (1 << 62, 4), (1 << 62, -4)]


def test_what_has_no_native_form():
    assert to_postfix(A + 10**30, {A: 0}) is None
    nested = A
    for _ in range(STACK_DEPTH + 5):
        nested = 1 + A % (2 + nested % 1000)
    assert to_postfix(nested, {A: 0}) is None


@pytest.mark.parametrize("sizes", [
    1, (), ((), (), None), (((0, 0, 0),), (), print), (((7, 0, 0),), (), print), ((1,), (), print), ((), (1,), print),
    ((), ((0, ()),), print), ((), ((0, (1, 0)),), print), ((), ((0, (0,)),), print), ((), ((0, (2,)),), print),
    ((), ((0, (9,)),), print), ((), ((0, (0, 1, 0, 2)),), print), ((), ((7, (0, 1)),), print), ((), ((0, [0, 1]),), print),
    ((), ((0, ("a", 1)),), print), ((), ((0, (0, 1 << 80)),), print), ((), ((0, (0, 1) * 40 + (2,) * 39),), print),
])  # fmt: skip
def test_nonsense_is_refused(sizes):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        GuardTree(2, 0, (), (), None, sizes)


def test_open_sizes_are_guarded_natively():
    def function(x, y, n):
        return (x[:, : y.shape[0] // 2] * n).sum() if x.shape[0] > y.shape[0] + n else x - n

    compiled = torch.compile(function, dynamic=True, backend="eager")
    compiled(torch.ones(9, 7), torch.ones(4), 3)
    (entry,) = debug_cache_entries(compiled)
    guards = entry.guarded_code.guards
    on_sizes = [guard for guard in guards.guards if guard.is_native and guard.reason.startswith("size")]
    assert len(on_sizes) >= 3 and all(guard.is_native for guard in guards.guards if "size(" in guard.expression)
    text = guards.text()
    assert "x.size(0) >= " in text and "y.size(0) >= 2" in text

    scope = dict(guards.names)
    exec(text, scope)
    generator = random.Random(0)
    space = function.__globals__
    seen = set()
    for _ in range(300):
        values = (torch.ones(generator.randint(1, 12), 7), torch.ones(generator.randint(1, 8)), generator.randint(-5, 9))
        found = entry.check_fn(*values, space, None)
        assert found == scope["guard"](*values, space, None)
        seen.add(found)
    assert seen == {True, False}


def test_a_huge_open_integer():
    compiled = torch.compile(lambda x, n: x + (n > 5), backend="eager")
    for n in (3, 7, 10**30, 10**31, -(10**30), 9):
        assert torch.equal(compiled(torch.zeros(2), n), torch.zeros(2) + (n > 5))
