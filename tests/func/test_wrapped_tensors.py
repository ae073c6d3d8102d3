"""`torch._C._functorch`: what tensors inside of vmap hide."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight._C import _functorch


def test_what_a_tensor_hides():
    seen = []

    def function(x):
        level = _functorch.maybe_current_level()
        inner = _functorch.get_unwrapped(x)
        seen.append((_functorch.is_batchedtensor(x), _functorch.maybe_get_level(x) == level, tuple(inner.shape)))
        shown = _functorch._remove_batch_dim(x, level, 3, 0)
        return _functorch._add_batch_dim(shown * 2, 0, level)

    x = torch.arange(6.0).view(3, 2)
    assert torch.vmap(function)(x).equal(x * 2) and seen == [(True, True, (3, 2))]
    assert _functorch.maybe_current_level() is None and _functorch.maybe_get_level(x) == _functorch.maybe_get_bdim(x) == -1
    with pytest.raises(RuntimeError, match="No wrappers"):
        _functorch.get_unwrapped(x)
    with pytest.raises(RuntimeError, match="no vmap is running"):
        _functorch.current_level()
