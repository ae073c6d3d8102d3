"""Integers that overflow wrap around, as in eager, also where the compiler could conclude that they don't."""

from __future__ import annotations

import pytest

import rushlight as torch


def _concluded(x):
    smaller = x - 1
    return x + 1 > x, smaller < x, x * x >= 0, x.abs() >= 0, -x <= 0, (x * 2) // 2 == x, (x << 1) >= x


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int16, torch.int8])
def test_comparisons_of_what_overflows(kind):
    limits = torch.iinfo(kind)
    values = [limits.max, limits.min, 3, -5, limits.max // 2 + 7, limits.max // 3]
    x = torch.tensor(values * 7, dtype=kind)  # whole vectors and a rest
    for found, expected in zip(torch.compile(_concluded)(x), _concluded(x), strict=True):
        assert torch.equal(found, expected)


def test_sums_and_products_wrap_around():
    x = torch.full((37,), 2**62 + 1)
    found = torch.compile(lambda x: (x.sum(), x.prod(), x.cumsum(0)))(x)
    assert found[0] == (37 * (2**62 + 1) + 2**63) % 2**64 - 2**63
    assert found[1] == (pow(2**62 + 1, 37, 2**64) + 2**63) % 2**64 - 2**63
    assert torch.equal(found[2], x.cumsum(0))
