"""Attributes and methods of scripted modules, written from Python and from scripted code."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import Tensor, nn


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


class Negate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return -x


class Swapping(nn.Module):
    first: Step
    second: Step

    def __init__(self):
        super().__init__()
        self.first = Double()
        self.second = Negate()

    def forward(self, x: Tensor) -> Tensor:
        result = self.first.forward(x)
        self.first = self.second
        return result


class Plain(nn.Module):
    __constants__ = ["limit"]

    def __init__(self):
        super().__init__()
        self.limit = 5
        self.count = 1
        self.step = Double()

    def forward(self, x: Tensor) -> Tensor:
        return self.step(x) + self.count * self.limit


def test_interface_is_swapped_in_scripted_code():
    module, x = torch.jit.script(Swapping()), torch.ones(1)
    assert [module(x).item() for _ in range(2)] == [2.0, -1.0]


def test_submodules_are_checked():
    module = torch.jit.script(Swapping())
    module.first = torch.jit.script(Negate())
    assert module(torch.ones(1)).item() == -1.0
    with pytest.raises(RuntimeError, match="non-scripted module"):
        module.first = Double()
    with pytest.raises(RuntimeError, match="for field 'step'"):
        torch.jit.script(Plain()).step = torch.jit.script(Negate())


def test_attributes_are_checked():
    module = torch.jit.script(Plain())
    module.count = 2
    assert module(torch.ones(1)).item() == 12.0
    with pytest.raises(RuntimeError, match="Cannot mutate TorchScript constant value: 'limit'"):
        module.limit = 6
    with pytest.raises(RuntimeError, match="Expected a value of type 'int' for field 'count'"):
        module.count = "two"


def test_methods_defined_within_init():
    class Constant(torch.jit.ScriptModule):
        def __init__(self, value: int):
            super().__init__()
            self.define(f"def forward(self, offset: int = 10) -> int:\n    return {value} + offset")

    one, two = Constant(1), Constant(2)
    assert (one(), two(), two(0)) == (11, 12, 2)


def test_defaults_in_source_text():
    unit = torch.jit.CompilationUnit("def f(x: int, scale: float = 2.0, negative: bool = False):\n    return x * scale, negative")
    assert unit.f(3) == (6.0, False) and unit.f(3, negative=True) == (6.0, True)
