"""Ints of scripted code have 64 bits; floats that have no such int are refused, as in PyTorch."""

from __future__ import annotations

import math

import pytest

import rushlight as torch

LEAST = -(2**63)


@torch.jit.script
def of_ints(i: int, values: list[int]):
    return abs(i), -i, sum(values), i // -1, math.gcd(i, i)


@torch.jit.script
def factorial(i: int):
    return math.factorial(i)


@torch.jit.script
def shifted(i: int, by: int):
    return i << by, i >> by


@torch.jit.script
def whole(x: float):
    return int(x)


@torch.jit.script
def rounded(x: float):
    return math.floor(x), math.ceil(x)


def test_ints_wrap():
    assert of_ints(LEAST, [2**62] * 3) == (LEAST, LEAST, -(2**62), LEAST, LEAST)
    assert factorial(20) == math.factorial(20) and factorial(21) == -4249290049419214848


@pytest.mark.parametrize("by, expected", [(1, (6, 1)), (62, (-(2**62), 0)), (63, (LEAST, 0)), (64, (0, 0)), (2**40, (0, 0))])
def test_shifts(by, expected):
    assert shifted(3, by) == expected


@pytest.mark.parametrize("x", [1e19, -1e300, math.inf, -math.inf, math.nan])
def test_floats_without_an_int(x):
    for function in (whole, rounded):
        with pytest.raises(torch.jit.Error, match="Cannot convert float .* to integer"):
            function(x)


def test_floats_with_an_int():
    assert (whole(-3.7), *rounded(3.2)) == (-3, 3, 4) and whole(float(LEAST)) == LEAST
