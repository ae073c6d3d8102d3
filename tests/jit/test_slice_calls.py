"""`slice(...)` as a subscript."""

from __future__ import annotations

import rushlight as torch


def parts(values: list[int], x: torch.Tensor):
    return values[slice(2)], values[slice(1, None)], values[slice(None, 5, 2)], x[slice(1, 3), 0], x[..., slice(None, None, 2)]


def test_slices():
    x = torch.arange(12).reshape(4, 3)
    expected, found = parts(list(range(8)), x), torch.jit.script(parts)(range(8), x)
    assert found[:3] == expected[:3]
    assert all(torch.equal(a, b) for a, b in zip(found[3:], expected[3:], strict=True))
