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


def test_bytes_keep_the_low_bits():
    values = [0, 255, 256, -1, -129, 1 << 30, -(1 << 31), 77]
    x = torch.tensor(values * 7, dtype=torch.int32)
    found = torch.compile(lambda x: x.to(torch.uint8).to(torch.int32) - 1, fullgraph=True)(x)
    assert found.tolist() == [value % 256 - 1 for value in values] * 7


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_extrema_compare_as_the_type(kind):
    limits = torch.iinfo(kind)
    values = [limits.min, limits.max, 0, 1, 3, limits.max - 1, limits.max // 2 + 1]
    x = torch.tensor(values * 7, dtype=kind)  # whole vectors and a rest
    y = torch.tensor([values[3 * i % 7] for i in range(7)] * 7, dtype=kind)
    found = torch.compile(lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), fullgraph=True)(x, y)
    for made, choose in zip(found, (max, min), strict=True):
        assert made.dtype is kind and made.tolist() == [choose(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
