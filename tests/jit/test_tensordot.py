"""`tensordot` in scripted code, by a number, a tuple or a list of dimensions."""

from __future__ import annotations

import rushlight as torch


def products(a, b):
    return torch.tensordot(a, b, ([1], [0])), torch.tensordot(a, b, [[1], [0]]), torch.tensordot(a, b, 1), torch.tensordot(a, b)


def test_tensordot():
    a, b = torch.randn(3, 3), torch.randn(3, 3)
    for found, expected in zip(torch.jit.script(products)(a, b), products(a, b), strict=True):
        assert torch.equal(found, expected)
