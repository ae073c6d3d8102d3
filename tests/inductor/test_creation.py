"""Tensors like others, in the order of their memory, are made in native code."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.inductor.native_nodes import check


@pytest.mark.parametrize("function", [
    lambda x: torch.zeros_like(x) + 1, lambda x: torch.ones_like(x) * x, lambda x: torch.full_like(x, 3.0),
    lambda x: torch.zeros_like(x).copy_(x * 2), lambda x: torch.empty_like(x).fill_(2.0),
])  # fmt: skip
@pytest.mark.parametrize("view", [
    lambda x: x, lambda x: x.transpose(0, 2), lambda x: x.permute(1, 2, 0)[::2], lambda x: x[:, :1].expand(4, 5, 6),
])  # fmt: skip
def test_tensors_like_views(function, view):
    check(lambda x: function(view(x)), torch.randn(4, 5, 6))
