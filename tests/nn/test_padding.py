"""Padding: what is returned never shares memory with the input."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.nn import functional as F


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("amounts", [(0, 0, 0, 0), (0, 0, -1, -1), (1, 0, 0, 0)])
def test_results_are_copies(mode, amounts):
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    before = x.tolist()
    F.pad(x, amounts, mode=mode).fill_(-1)
    assert x.tolist() == before
