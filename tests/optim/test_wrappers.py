"""Classes that wrap an optimizer and call no `super().__init__`."""

from __future__ import annotations

import pytest

import rushlight as torch


class Wrapper(torch.optim.Optimizer):
    """What training libraries wrap optimizers in."""

    def __init__(self, inner):
        self.inner, self.param_groups, self.state, self.defaults = inner, inner.param_groups, inner.state, inner.defaults

    def step(self, closure=None):
        return self.inner.step(closure)


def test_wrappers_step_and_have_hooks():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = Wrapper(torch.optim.SGD([weight], lr=0.1))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    calls = []
    optimizer.register_step_pre_hook(lambda *arguments: calls.append(1))
    (weight * 2).sum().backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    assert weight.tolist() == pytest.approx([0.8, 0.8]) and calls == [1] and weight.grad is None
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01) and optimizer.state_dict()["param_groups"]
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        optimizer.missing  # noqa: B018


def test_no_module_in_a_list():
    modules = torch.nn.ModuleList([torch.nn.Linear(1, 1), None])
    assert list(modules.state_dict()) == ["0.weight", "0.bias"] and modules[1] is None and len(modules) == 2
    assert repr(modules) == "ModuleList(\n  (0): Linear(in_features=1, out_features=1, bias=True)\n  (1): None\n)"
    modules.append(None).insert(0, None)
    assert [module is None for module in modules.double()] == [True, False, True, True]
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        torch.nn.ModuleList([3])


def test_fans():
    weight = torch.ones(3, 4, 2)
    assert torch.nn.init._calculate_fan_in_and_fan_out(weight) == (8, 6)
    assert torch.nn.init._calculate_correct_fan(weight, "FAN_OUT") == 6
    with pytest.raises(ValueError, match="Mode other not supported, please use one of"):
        torch.nn.init._calculate_correct_fan(weight, "other")
