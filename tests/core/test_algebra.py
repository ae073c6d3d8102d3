"""The index algebra: what simplification must reach, as text, and values against plain Python at every point."""

from __future__ import annotations

import copy
import itertools
import math
import operator
import pickle
import random
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rushlight.core.algebra import (
    Const,
    Expr,
    Var,
    as_expr,
    bounds,
    flatten_index,
    is_nonnegative,
    reindex_view,
    row_major_strides,
    to_cpp,
    unflatten_index,
)

I0, I1, I2, I3 = (Var(f"i{axis}", extent) for axis, extent in enumerate((2, 3, 4, 5)))
X = Var("x", 24)
S0, S1 = Var("s0"), Var("s1")
P, Q = Var("p", S0), Var("q", S1)


# Canonical form and identity


def test_equal_expressions_are_one_object():
    assert I0 + I1 is I1 + I0
    assert 2 * (I0 + 3) - I0 is I0 + 6
    assert (I0 - I0) == 0
    assert Var("i0", 2) is I0
    assert Var("i0", Const(2)) is I0
    assert Var("i0", 7) != I0
    assert as_expr(np.int64(3)) is Const(3)


def test_constants_act_as_integers():
    five = I0 * 0 + 5
    assert five == 5 and hash(five) == hash(5) and int(five) == 5
    assert list(range(five)) == [0, 1, 2, 3, 4]
    assert I0 != 5 and {five: "found"}[5] == "found"


def test_copies_and_pickles_stay_interned():
    expression = (X // 4) % 3 + P * S1
    assert copy.deepcopy(expression) is expression
    assert pickle.loads(pickle.dumps(expression)) is expression


def test_ordering_is_by_variable_then_kind():
    ten = Var("i10", 4)
    assert sorted([ten, X % 5, I2, X // 4, X, as_expr(7)]) == [as_expr(7), I2, ten, X, X // 4, X % 5]


# What simplification reaches, as text

SIMPLIFIED = [
    (I1 + 384 * I0, "384*i0 + i1"),
    ((I0 + I1) * (I0 - 2), "-2*i0 + i0*i0 + i0*i1 - 2*i1"),
    (3 - X, "-x + 3"),
    (-(X // 5), "-(x // 5)"),
    (I2 // 4, "0"),
    (I2 % 4, "i2"),
    ((12 * I0 + I1) // 12, "i0"),
    ((12 * I0 + X) // 12, "i0 + x // 12"),
    ((12 * I0 + X) % 12, "x % 12"),
    ((4 * I1 + I2) // 8, "i1 // 2"),
    ((4 * I1 + I2) % 8, "4*(i1 % 2) + i2"),
    ((12 * I0 + 4 * I1 + I2) // 24, "0"),
    ((24 * X + 4 * I1 + I2) // 48, "x // 2"),
    ((4 * X) // 6, "(2*x) // 3"),
    ((4 * X + 1) % 6, "2*((2*x) % 3) + 1"),
    ((X // 2) // 3, "x // 6"),
    ((X // 2 + 1) // 3, "(x + 2) // 6"),
    ((X % 12) // 4, "(x // 4) % 3"),
    ((X % 12) % 4, "x % 4"),
    ((X % 4) % 12, "x % 4"),
    (4 * (X // 4) + X % 4, "x"),
    (20 * (X // 4) + 5 * (X % 4) + I3, "i3 + 5*x"),
    (4 * ((X // 4) % 3) + X % 4, "x % 12"),
    (12 * (X // 12) + 4 * ((X // 4) % 3) + X % 4, "x"),
    ((X + 9) // 4, "(x + 1) // 4 + 2"),
    ((X - 5) % 4, "(x + 3) % 4"),
    ((7 - I2) // 8, "0"),
    ((23 - X) // 4, "(-x + 23) // 4"),
    ((I2 - 4) // 4, "-1"),
    ((I2 - 4) % 4, "i2"),
    ((P * S1 + Q) // S1, "p"),
    ((P * S1 + Q) % S1, "q"),
    ((4 * S0 * X + S0 * I2 + P) // (4 * S0), "x"),
    (S1 * (X // S1) + X % S1, "x"),
    (6 * S1 * (X // S1) + 6 * (X % S1), "6*x"),
    ((X // S0) // S1, "x // (s0*s1)"),
    ((X % (S0 * S1)) // S1, "(x // s1) % s0"),
    ((X % (S0 * S1)) % S1, "x % s1"),
    ((S0 * I0 + I0 + P) // (S0 + 1), "i0"),
    ((P + Q * 2) // S0, "(p + 2*q) // s0"),
]


@pytest.mark.parametrize(("expression", "text"), SIMPLIFIED, ids=[text for _, text in SIMPLIFIED])
def test_simplified_form(expression, text):
    assert str(expression) == text
    assert eval(text, {str(v): v for v in expression.free_variables()}) == expression


CPP = [
    (384 * I0 + I1, "384L*i0 + i1"),
    ((X // 4) % 3, "(x / 4L) % 3L"),
    ((4 * X + I3) // 6, "(i3 + 4L*x) / 6L"),
    (3 * (X // 4) - X % 5, "3L*(x / 4L) - (x % 5L)"),
    (I0 - 7, "i0 - 7L"),
    (as_expr(-7), "-7L"),
    (2 * P * S1 + X // 4, "2L*p*s1 + x / 4L"),
    (P * (X // S1), "p*(x / s1)"),
    ((X - I1 * S0) // 3, "rl::floor_div(-i1*s0 + x, 3L)"),
    (2 * ((X - I1 * S0) % 4), "2L*rl::floor_mod(-i1*s0 + x, 4L)"),
]


@pytest.mark.parametrize(("expression", "text"), CPP, ids=[text for _, text in CPP])
def test_cpp(expression, text):
    assert to_cpp(expression) == text


# Queries


def test_coefficients():
    expression = 12 * I0 + 4 * I1 + X // 4 + I3 * S0 + 7
    assert [expression.coefficient(v) for v in (I0, I1, I2)] == [12, 4, 0]
    assert expression.coefficient(X) is None and expression.coefficient(I3) is None
    assert expression.is_affine_in(I1) and not expression.is_affine_in(X)
    assert I0.coefficient(I0) == 1
    assert (X + X // 4).coefficient(X) is None


def test_free_variables_and_divisibility():
    expression = 12 * I0 + 8 * (X // 5)
    assert expression.free_variables() == {I0, X}
    assert expression.contains(X) and not expression.contains(I1)
    assert expression.divisible_by(4) and not expression.divisible_by(3) and not (expression + 1).divisible_by(2)


def test_substitution_is_simultaneous_and_simplifies():
    assert (I0 + 2 * I1).substitute({I0: I1, I1: I0}) == I1 + 2 * I0
    assert (X // 4 + X % 4).substitute({X: 4 * I0 + I2}) == I0 + I2
    assert (X // S0).substitute({S0: 4}) == X // 4
    assert (I0 + 1).substitute({I1: 5}) == I0 + 1


def test_bounds():
    assert bounds(12 * I0 + 4 * I1 - I2) == (-3, 20)
    assert bounds((X // 4) % 4) == (0, 3)
    assert bounds(S0 * X + 1) == (1, None)
    assert bounds(X - S0) == (None, 23)
    assert bounds(P) == (0, None)
    assert is_nonnegative(X % S0) and not is_nonnegative(X - 1)


def test_bad_operands_are_named():
    with pytest.raises(ZeroDivisionError, match="i0 divided by zero"):
        I0 // 0
    with pytest.raises(ValueError, match="x divided by -3"):
        X % -3
    with pytest.raises(TypeError):
        I0 + 1.5
    with pytest.raises(TypeError, match="got 'a' of type str"):
        as_expr("a")
    with pytest.raises(KeyError, match="no value given for variable i1"):
        (I0 + I1).evaluate({I0: 1})


# Views


def flat(index, sizes):
    return flatten_index(index, row_major_strides(sizes))


def test_flatten_of_unflatten_is_the_identity():
    for sizes in [(2, 3, 4), (24,), (1, 24), (4, 1, 6), (3, 8, 1)]:
        assert flat(unflatten_index(X, sizes), sizes) == X
    z = Var("z", S0 * S1)
    assert flat(unflatten_index(z, [S0, S1]), [S0, S1]) == z


def test_unflatten_of_flatten_is_the_identity():
    index = [I0, I1, I2, I3]
    assert unflatten_index(flat(index, (2, 3, 4, 5)), (2, 3, 4, 5)) == index
    assert unflatten_index(flat([I0, P, Q], (2, S0, S1)), (2, S0, S1)) == [I0, P, Q]


def test_attention_heads_give_plain_strides():
    """(batch*tokens, heads*width) viewed as (batch, tokens, heads, width) and transposed: no division remains."""
    batch, heads, tokens, width = (Var(name, n) for name, n in zip("bhtw", (2, 12, 128, 32), strict=True))
    split = reindex_view((256, 384), (2, 128, 12, 32))
    row, column = split([batch, tokens, heads, width])
    assert str(flatten_index([row, column], (384, 1))) == "49152*b + 32*h + 384*t + w"
    merge = reindex_view((2, 12, 128, 32), (24, 128, 32))
    outer = Var("o", 24)
    b, h, t, w = merge([outer, tokens, width])
    row, column = split([b, t, h, w])
    assert str(flatten_index([row, column], (384, 1))) == "49152*(o // 12) + 32*(o % 12) + 384*t + w"


def test_reshape_passes_untouched_dimensions_through():
    a, b, c, d = Var("a", 2), Var("b", 12), Var("c", 5), Var("d", S0)
    assert list(map(str, reindex_view((2, 3, 4, 5), (2, 12, 5))([a, b, c]))) == ["a", "b // 4", "b % 4", "c"]
    assert list(map(str, reindex_view((2, 1, 12, 5), (2, 12, 5, 1))([a, b, c, 0]))) == ["a", "0", "b", "c"]
    assert list(map(str, reindex_view((S0, 3, 4), (S0, 12))([d, b]))) == ["d", "b // 4", "b % 4"]
    assert reindex_view((), (1, 1))([0, 0]) == []
    assert reindex_view((0, 3), (3, 0))([a, b]) == [0, 0]
    # Without known ranges of the index, pairing is what avoids division.
    t0, t1, t2 = (Var(f"t{axis}") for axis in range(3))
    assert reindex_view((7, 2, 3, 9), (7, 6, 9))([t0, t1, t2]) == [t0, t1 // 3, t1 % 3, t2]


def test_view_errors():
    with pytest.raises(ValueError, match=r"sizes \(5,\) holds 5 elements, but the tensor of sizes \(2, 3\) holds 6"):
        reindex_view((2, 3), (5,))
    with pytest.raises(ValueError, match="2 indices but 1 strides"):
        flatten_index([I0, I1], [1])
    with pytest.raises(ValueError, match="1 indices into a view"):
        reindex_view((6,), (2, 3))([I0])


def random_factorisation(generator, numel):
    sizes = []
    while numel > 1:
        divisor = generator.choice([d for d in range(2, numel + 1) if numel % d == 0])
        sizes.append(divisor)
        numel //= divisor
    for _ in range(generator.randint(0, 2)):
        sizes.insert(generator.randint(0, len(sizes)), 1)
    return sizes


@pytest.mark.parametrize("seed", range(60))
def test_chains_of_views_agree_with_numpy(seed):
    """reshape, permute and reverse chains: the composed index reads the same elements as NumPy's views."""
    generator = random.Random(seed)
    numel = generator.choice([12, 24, 36, 60])
    array = np.arange(numel).reshape(random_factorisation(generator, numel))
    steps = [("start", array.shape)]
    for _ in range(generator.randint(1, 5)):
        if generator.random() < 0.5:
            order = generator.sample(range(array.ndim), array.ndim)
            steps.append(("permute", order))
            array = array.transpose(order)
        else:
            sizes = random_factorisation(generator, numel)
            steps.append(("reshape", (array.shape, sizes)))
            array = array.reshape(sizes)
    variables = [Var(f"i{axis}", size) for axis, size in enumerate(array.shape)]
    index = list(variables)
    for kind, what in reversed(steps[1:]):
        if kind == "permute":
            index = [index[what.index(axis)] for axis in range(len(what))]
        else:
            index = reindex_view(*what)(index)
    linear = flat(index, steps[0][1])
    for point in itertools.product(*map(range, array.shape)):
        assert linear.evaluate(dict(zip(variables, point, strict=True))) == array[point]


@pytest.mark.parametrize("seed", range(40))
def test_split_permute_merge_and_back_is_affine(seed):
    """Unflatten, permute, flatten with the permuted sizes, and undo it all: exactly the plain strides come back."""
    generator = random.Random(seed)
    sizes = random_factorisation(generator, generator.choice([24, 36, 96, 384]))
    order = generator.sample(range(len(sizes)), len(sizes))
    permuted = [sizes[axis] for axis in order]
    variables = [Var(f"i{axis}", size) for axis, size in enumerate(permuted)]
    merged = flat(variables, permuted)
    index = unflatten_index(merged, permuted)
    source = flat([index[order.index(axis)] for axis in range(len(sizes))], sizes)
    strides = [int(stride) for stride in row_major_strides(sizes)]
    for axis, variable in enumerate(variables):
        if permuted[axis] > 1:
            assert source.coefficient(variable) == strides[order[axis]]


# Brute force: random expressions against plain Python at every point

SMALL = [Var("a", 2), Var("b", 3), Var("c", 4), Var("d", 6)]
SIZES = [Var("m"), Var("n")]
SIZED = [Var("p", SIZES[0]), Var("q", SIZES[1])]
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "%": operator.mod}


def random_pair(generator, depth, positive=False):
    """(expression, plain Python function of the points) built in parallel; `positive` asks for a divisor."""
    if positive:
        if generator.random() < 0.85:
            number = generator.choice([1, 2, 3, 4, 6, 8, 12])
            return as_expr(number), lambda env: number
        size = generator.choice(SIZES)
        return size, lambda env: env[size]
    if depth == 0 or generator.random() < 0.1:
        if generator.random() < 0.25:
            number = generator.randint(-6, 12)
            return as_expr(number), lambda env: number
        variable = generator.choice(SMALL * 3 + SIZES + SIZED)
        return variable, lambda env: env[variable]
    operation = generator.choice("++-s*/%/%")
    left, left_value = random_pair(generator, depth - 1)
    if operation == "s":
        number = generator.choice([2, 3, 4, 6, 12])
        return left * number, lambda env: left_value(env) * number
    right, right_value = random_pair(generator, depth - 1, positive=operation in "/%")
    rule = OPERATIONS[operation]
    return rule(left, right), lambda env: rule(left_value(env), right_value(env))


def every_point():
    """All points at once, as NumPy arrays: evaluation uses only operators that arrays have."""
    variables = SMALL + SIZES + SIZED
    ranges = [range(variable.extent) for variable in SMALL] + [range(1, 4)] * len(SIZES) + [range(3)] * len(SIZED)
    grid = dict(zip(variables, np.meshgrid(*ranges, indexing="ij"), strict=True))
    inside = np.logical_and.reduce([grid[variable] < grid[variable.extent] for variable in SIZED])
    return {variable: axis[inside] for variable, axis in grid.items()}


POINTS = every_point()


def check_against_python(expression, value):
    expected = np.broadcast_to(np.asarray(value(POINTS)), POINTS[SMALL[0]].shape)
    assert np.all(expression.evaluate(POINTS) == expected), str(expression)
    low, high = bounds(expression)
    assert low is None or low <= expected.min()
    assert high is None or high >= expected.max()
    names = {str(variable): values for variable, values in POINTS.items()}
    assert np.all(eval(str(expression), {}, names) == expected), str(expression)
    assert np.all(evaluate_cpp(to_cpp(expression), names) == expected), to_cpp(expression)


def evaluate_cpp(text, names):
    text = re.sub(r"(\d+)L", r"\1", text).replace("rl::", "rl.").replace(" / ", " // ")
    library = SimpleNamespace(floor_div=lambda a, b: a // b, floor_mod=lambda a, b: a % b)
    return eval(text, {"rl": library}, names)


@pytest.mark.parametrize("seed", range(400))
def test_random_expressions(seed):
    generator = random.Random(seed)
    check_against_python(*random_pair(generator, generator.randint(1, 5)))


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_random_expressions_by_hypothesis(generator, depth):
    check_against_python(*random_pair(generator, depth))


@settings(max_examples=80, deadline=None)
@given(
    coefficients=st.lists(st.integers(-24, 24), min_size=4, max_size=4),
    constant=st.integers(-40, 40),
    divisors=st.lists(st.sampled_from([2, 3, 4, 6, 8, 12]), min_size=1, max_size=3),
)
def test_digits_of_affine_expressions(coefficients, constant, divisors):
    """Mixed-radix digits of any affine expression are right, and add up to the expression again."""
    linear = flatten_index(SMALL, coefficients, constant)
    sizes = [1000, *divisors]
    digits = unflatten_index(linear, sizes)
    step = 1
    for size, digit in reversed(list(zip(sizes[1:], digits[1:], strict=True))):
        plain = linear.evaluate(POINTS) // step % size
        assert np.all(digit.evaluate(POINTS) == plain)
        step *= size
    assert flat(digits, sizes) == linear


@settings(max_examples=80, deadline=None)
@given(st.randoms(use_true_random=False))
def test_substitution_agrees_with_evaluation(generator):
    expression, value = random_pair(generator, 3)
    inner, inner_value = random_pair(generator, 2)
    target = SMALL[3]
    inner = inner % 6
    replaced = expression.substitute({target: inner})
    expected = value(POINTS | {target: inner_value(POINTS) % 6 + 0 * POINTS[target]})
    assert np.all(replaced.evaluate(POINTS) == expected)


def test_dividends_in_generated_code_are_nonnegative():
    """`/` and `%` appear in C++ only where no point makes the dividend negative."""
    generator = random.Random(0)
    for _ in range(200):
        expression, _ = random_pair(generator, 4)
        for node in divisions_in(expression):
            if is_nonnegative(node.dividend):
                assert np.min(node.dividend.evaluate(POINTS)) >= 0


def divisions_in(expression: Expr):
    for child in expression._children():
        yield from divisions_in(child)
    if hasattr(expression, "dividend"):
        yield expression


def test_numel_of_strides():
    sizes = (3, 1, 7, 2)
    assert [int(s) for s in row_major_strides(sizes)] == [math.prod(sizes[axis + 1:]) for axis in range(4)]
