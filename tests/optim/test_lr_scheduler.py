"""Schedules: the rates they set, chaining, resuming, warnings and errors."""

from __future__ import annotations

import math
import warnings

import pytest

import rushlight as torch
from rushlight.nn.parameter import Parameter
from rushlight.optim import SGD
from rushlight.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, StepLR


def optimizer(*rates: float) -> SGD:
    made = SGD([{"params": [Parameter(torch.tensor([1.0]))], "lr": rate} for rate in rates or (1.0,)])
    made.step()
    return made


def rates(schedule: LRScheduler, count: int) -> list[float]:
    seen = []
    for _ in range(count):
        seen.append(schedule.optimizer.param_groups[0]["lr"])
        schedule.optimizer.step()
        schedule.step()
    return seen


def test_step():
    assert rates(StepLR(optimizer(), 2, gamma=0.5), 6) == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_lambda_for_each_group():
    made = optimizer(1.0, 2.0)
    schedule = LambdaLR(made, [lambda epoch: 0.5**epoch, lambda epoch: 1 + epoch])
    made.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.5, 4.0]


def test_cosine_and_back():
    expected = [0.1 + 0.9 * (1 + math.cos(math.pi * epoch / 5)) / 2 for epoch in range(20)]
    assert rates(CosineAnnealingLR(optimizer(), 5, eta_min=0.1), 20) == pytest.approx(expected, abs=1e-12)


def test_two_schedules_on_one_optimizer():
    made = optimizer()
    first, second = StepLR(made, 1, gamma=0.5), StepLR(made, 1, gamma=0.1)
    made.step()
    first.step()
    second.step()
    assert made.param_groups[0]["lr"] == pytest.approx(0.05)


def test_tensor_rates_are_set_in_place():
    rate = torch.tensor(1.0)
    made = SGD([Parameter(torch.tensor([1.0]))], lr=rate)
    schedule = StepLR(made, 1, gamma=0.5)
    made.step()
    schedule.step()
    assert made.param_groups[0]["lr"] is rate
    assert rate.item() == 0.5
    assert schedule.base_lrs[0].item() == 1.0


def test_resuming_by_state_dict():
    whole = rates(CosineAnnealingLR(optimizer(), 7), 10)
    made = optimizer()
    schedule = CosineAnnealingLR(made, 7)
    rates(schedule, 4)
    saved = (made.state_dict(), schedule.state_dict())
    other = optimizer()
    resumed = CosineAnnealingLR(other, 3)
    other.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert rates(resumed, 6) == pytest.approx(whole[4:])


def test_resuming_by_epoch():
    made = optimizer()
    made.param_groups[0]["initial_lr"] = 1.0
    assert CosineAnnealingLR(made, 10, last_epoch=4).get_last_lr() == pytest.approx([0.5])
    with pytest.raises(KeyError, match="initial_lr"):
        StepLR(optimizer(), 2, last_epoch=4)


def test_state_of_functions_and_callable_objects():
    class Warmup:
        def __init__(self, length):
            self.length = length

        def __call__(self, epoch):
            return min(1.0, (epoch + 1) / self.length)

    schedule = LambdaLR(optimizer(1.0, 1.0), [Warmup(4), lambda epoch: 1.0])
    saved = schedule.state_dict()
    assert saved["lr_lambdas"] == [{"length": 4}, None]
    other = LambdaLR(optimizer(1.0, 1.0), [Warmup(2), lambda epoch: 1.0])
    other.load_state_dict(saved)
    assert other.lr_lambdas[0].length == 4
    assert other.state_dict().keys() == saved.keys()


def test_order_of_calls():
    made = optimizer()
    schedule = StepLR(made, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    schedule = StepLR(made, 1)
    made.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


def test_errors():
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        StepLR(1, 2)
    with pytest.raises(ValueError, match="Expected 1 lr_lambdas, but got 2"):
        LambdaLR(optimizer(), [len, len])
    with pytest.raises(NotImplementedError, match="get_lr"):
        LRScheduler(optimizer())
