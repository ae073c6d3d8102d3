"""Tensors of PyTorch beside those of this library: an error that names both packages."""

from __future__ import annotations

import operator

import pytest

import rushlight as rl

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "eq", "lt", "iadd", "and_"]
)
def test_operators(name):
    torch = pytest.importorskip("torch")
    ours, theirs = rl.ones(2).long(), torch.ones(2).long()
    for pair in ((ours, theirs), (theirs, ours)):
        with pytest.raises(TypeError, match=r"rushlight.Tensor and torch.Tensor.*PyTorch"):
            getattr(operator, name)(*pair)


def test_functions_and_layers():
    torch = pytest.importorskip("torch")
    ours, theirs = rl.ones(2), torch.ones(2)
    for call in (
        lambda: rl.add(ours, theirs), lambda: torch.add(theirs, ours), lambda: torch.sin(ours), lambda: rl.sin(theirs),
        lambda: rl.cat([ours, theirs]), lambda: torch.cat([theirs, ours]), lambda: ours.copy_(theirs),
        lambda: rl.nn.Linear(2, 2)(theirs), lambda: torch.nn.Linear(2, 2)(ours), lambda: rl.nn.functional.relu(theirs),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"rushlight.Tensor and torch.Tensor.*PyTorch"):
            call()


def test_conversions():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(3.0)
    for made in (rl.from_dlpack(theirs), rl.tensor(theirs), rl.as_tensor(theirs)):
        assert isinstance(made, rl.Tensor) and made.tolist() == [0.0, 1.0, 2.0]
