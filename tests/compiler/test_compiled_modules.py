"""What is set on a compiled module reaches the module, and what is deleted goes there."""

from __future__ import annotations

import copy

import pytest

import rushlight as torch
from rushlight import nn


@pytest.fixture
def pair():
    module = nn.Linear(2, 2)
    return module, torch.compile(module)


def test_attributes(pair):
    module, compiled = pair
    compiled.scale = 3
    assert module.scale == 3 and compiled.scale == 3
    del compiled.scale
    assert not hasattr(module, "scale") and not hasattr(compiled, "scale")


def test_parameters_buffers_and_children(pair):
    module, compiled = pair
    compiled.weight = nn.Parameter(torch.zeros(2, 2))
    compiled.register_buffer("count", torch.ones(1))
    compiled.register_parameter("extra", nn.Parameter(torch.ones(1)))
    compiled.child = nn.ReLU()
    compiled.add_module("other", nn.Tanh())
    assert module.weight.sum() == 0 and set(module.state_dict()) == {"weight", "bias", "extra", "count"}
    assert [name for name, _ in module.named_children()] == ["child", "other"]
    torch.testing.assert_close(compiled(torch.ones(1, 2)), module.bias[None])
    compiled.bias = None
    torch.testing.assert_close(compiled(torch.ones(1, 2)), torch.zeros(1, 2))
    del compiled.child
    assert not hasattr(module, "child")
    with pytest.raises(AttributeError, match="child"):
        del compiled.child


def test_the_mode_is_that_of_both(pair):
    module, compiled = pair
    compiled.training = False
    assert not module.training and not compiled.training
    compiled.train()
    assert module.training and compiled.training


def test_copies_have_attributes_of_their_own(pair):
    module, compiled = pair
    other = copy.deepcopy(compiled)
    other.weight = nn.Parameter(torch.zeros(2, 2))
    other.scale = 1
    assert module.weight.sum() != 0 and not hasattr(module, "scale") and other._orig_mod is not module


def test_training_is_the_originals():
    module = torch.nn.Linear(3, 3).eval()
    compiled = torch.compile(module, backend="eager")
    assert compiled.training is False and "training" in dir(compiled)
    compiled.train()
    assert compiled.training and module.training
    module.eval()
    assert compiled.training is False
    compiled.training = True
    assert module.training and copy.deepcopy(compiled).training
