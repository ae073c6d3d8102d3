"""Copies of compiled modules: they are compiled, too, and have parameters of their own."""

from __future__ import annotations

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn


def by_pickle(module):
    return pickle.loads(pickle.dumps(module))


@pytest.mark.parametrize("copied", [copy.deepcopy, by_pickle], ids=["deepcopy", "pickle"])
def test_a_copy_has_parameters_of_its_own(copied):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    original = torch.compile(model, backend="aot_eager", fullgraph=True)
    x = torch.randn(2, 3)
    with torch.no_grad():
        before = original(x)
        twin = copied(original)
        torch.testing.assert_close(twin(x), before)
        twin._orig_mod[0].weight.zero_()
        torch.testing.assert_close(original(x), before)
        torch.testing.assert_close(twin(x), twin._orig_mod(x))
    assert type(twin) is type(original)


def test_a_copy_keeps_mode_and_hooks():
    seen = []
    original = torch.compile(nn.Linear(3, 3), backend="eager")
    original.register_forward_hook(lambda module, inputs, result: seen.append(module))
    original.eval()
    twin = copy.deepcopy(original)
    twin(torch.ones(1, 3))
    assert seen[-1] is twin and not twin.training and not twin._orig_mod.training


def test_a_copy_of_a_module_that_is_not_compiled():
    original = torch.compiler.disable(nn.Linear(3, 3))
    twin = copy.deepcopy(original)
    with torch.no_grad():
        twin.weight.zero_()
        twin.bias.zero_()
        assert twin(torch.ones(1, 3)).tolist() == [[0, 0, 0]] and original(torch.ones(1, 3)).abs().sum() > 0
