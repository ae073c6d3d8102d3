"""Variances of values far from zero, whose mean has no room for their small differences: in eager and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch


@pytest.mark.parametrize("dim", [0, 1, (0, 1), (0, 2), None], ids=str)
@pytest.mark.parametrize("shape", [(6, 43, 3), (300, 40, 2), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("kind, far, tolerance", [(torch.float32, 1e5, 1e-6), (torch.float64, 1e10, 1e-13)], ids=str)
def test_far_from_zero(shape, dim, kind, far, tolerance):
    torch.manual_seed(0)
    x = torch.randn(*shape, dtype=kind) * 0.1 + far
    exact = np.var(x.numpy().astype(np.longdouble), axis=dim, ddof=1)
    for function in (torch.var, torch.compile(torch.var, dynamic=False)):
        found = function(x, dim).numpy()
        assert np.abs(found - exact).max() <= tolerance * np.abs(exact).max()
        assert np.abs(function(x.expand(2, *shape)[0], dim).numpy() - exact).max() <= tolerance * np.abs(exact).max()


def test_equal_values_have_none_and_nan_stays():
    for value in (0.1, 1e7 + 1, -3.3e-12):
        x = torch.full((1000,), value)
        assert x.var().item() == torch.compile(torch.var)(x).item()
        assert x.var().item() <= (abs(value) * 1e-6) ** 2
    for bad in (float("nan"), float("inf")):
        x = torch.tensor([1.0, bad, 2.0])
        assert x.var().isnan() and torch.compile(torch.var)(x).isnan()
