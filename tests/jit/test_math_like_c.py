"""Functions of `math` in scripted code give infinity and NaN where Python's raise, as in PyTorch."""

from __future__ import annotations

import math

import pytest

import rushlight as torch

INF, NAN = math.inf, math.nan


@torch.jit.script
def domain(x: float):
    return math.sin(x), math.cos(x), math.tan(x), math.asin(x), math.acos(x), math.acosh(x), math.atanh(x), math.log1p(x)


@torch.jit.script
def growth(x: float):
    return math.exp(x), math.expm1(x), math.sinh(x), math.cosh(x), math.gamma(x), math.lgamma(x)


@torch.jit.script
def rounded(x: float):
    return round(x)


@torch.jit.script
def of_two(x: float, y: float):
    return math.fmod(x, y), math.pow(x, y), x**y


def same(found, expected):
    """Asserts that numbers are equal, with their signs, NaN equal to NaN."""
    for one, other in zip(found, expected, strict=True):
        assert type(one) is float and (repr(one) == repr(other) or math.isclose(one, other, rel_tol=1e-12))


def test_functions_outside_of_their_domain():
    same(domain(INF), [NAN, NAN, NAN, NAN, NAN, INF, NAN, INF])
    same(domain(-2.0), [math.sin(-2), math.cos(-2), math.tan(-2), NAN, NAN, NAN, NAN, NAN])
    same(domain(-1.0)[-2:], [-INF, -INF])


def test_functions_that_overflow():
    same(growth(1e4), [INF, INF, INF, INF, INF, math.lgamma(1e4)])
    same(growth(-1e4)[:4], [0.0, -1.0, -INF, INF])
    same(growth(-0.0)[4:], [-INF, INF])
    same(growth(-1.0)[4:], [NAN, INF])


@pytest.mark.parametrize(("x", "expected"), [(INF, INF), (-INF, -INF), (NAN, NAN), (-0.3, -0.0), (2.5, 2.0), (1e300, 1e300)])
def test_round(x, expected):
    same([rounded(x)], [expected])


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (-7.0, 3.0, -343.0), (0.0, 0.0, 1.0), (INF, 2.0, INF), (-8.0, 1 / 3, NAN), (-10.0, 501.0, -INF), (-10.0, 500.0, INF),
        (-0.0, 2.0, 0.0),
    ],
)  # fmt: skip
def test_remainders_and_powers(x, y, expected):
    remainder = math.fmod(x, y) if y and math.isfinite(x) else NAN
    same(of_two(x, y), [remainder, expected, expected])


def test_zero_has_no_negative_power():
    with pytest.raises(RuntimeError, match="0.0 cannot be raised to a negative power"):
        of_two(0.0, -1.0)
