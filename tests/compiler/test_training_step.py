"""Whole training steps in one compiled function: forward, backward and the optimizer's update go as in eager."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight._dynamo.testing import EagerAndRecordGraphs
from rushlight.nn import functional as F
from rushlight.optim import lr_scheduler, per_parameter
from tests.compiler.test_training import same
from tests.csrc.test_native_paths import native


class Lion(torch.optim.Optimizer):
    """Chen et al. (2023): steps of one size, in the direction of a running mean's sign."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.01, "betas": (0.9, 0.99)})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            near, far = group["betas"]
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["mean"] = torch.zeros_like(parameter)
                mean, gradient = state["mean"], parameter.grad
                parameter.add_(torch.sign(mean * near + gradient * (1 - near)), alpha=-group["lr"])
                mean.lerp_(gradient, 1 - far)


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02, maximize=True, weight_decay=0.1, foreach=True),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.02, amsgrad=True),
    "rate in a tensor": lambda parameters: torch.optim.AdamW(parameters, lr=torch.tensor(0.02)),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, centered=True, momentum=0.5),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.05, lr_decay=0.01),
    "Adadelta": torch.optim.Adadelta, "NAdam": torch.optim.NAdam, "Rprop": torch.optim.Rprop, "ASGD": torch.optim.ASGD,
    "Adamax": lambda parameters: torch.optim.Adamax(parameters, weight_decay=0.1),
    "RAdam": lambda parameters: torch.optim.RAdam(parameters, lr=0.01),
    "Adafactor": lambda parameters: torch.optim.Adafactor(parameters, weight_decay=0.1),
    "Lion": Lion,
}  # fmt: skip


def make_step(model, optimizer, schedule, clip):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        schedule.step()
        return loss

    return step


@pytest.mark.parametrize("kind, clip", [*((kind, False) for kind in OPTIMIZERS), ("SGD", True), ("Adam", True)])
def test_a_whole_step_goes_as_in_eager(kind, clip):
    torch.manual_seed(0)
    eager = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))
    ours, steps = copy.deepcopy(eager), []
    for model in (eager, ours):
        optimizer = OPTIMIZERS[kind](model.parameters())
        steps.append(make_step(model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5), clip))
    fast = torch.compile(steps[1], options={"recompile_limit": 16 if kind == "Lion" else 1})
    for _ in range(6):
        x, y = torch.randn(5, 8), torch.randint(0, 4, (5,))
        theirs, found = steps[0](x, y), fast(x, y)
        same(found.detach(), theirs.detach(), 1e-4)
        same([value.detach() for value in ours.parameters()], [value.detach() for value in eager.parameters()], 1e-3)
        same([value.grad for value in ours.parameters()], [value.grad for value in eager.parameters()], 1e-3)


SCHEDULES = {
    "OneCycleLR": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20),
    "CosineAnnealingWarmRestarts": lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3),
    "LambdaLR": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9 ** (epoch + 1)),
    "SequentialLR": lambda optimizer: lr_scheduler.SequentialLR(
        optimizer, [lr_scheduler.LinearLR(optimizer), lr_scheduler.PolynomialLR(optimizer, 9)], [3]),
    "ChainedScheduler": lambda optimizer: lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(optimizer, 0.9)]),
}  # fmt: skip


@pytest.mark.filterwarnings("error:compile")  # what is said of a frame that is captured too often
@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_schedule_is_not_captured(kind):
    found, backend = [], EagerAndRecordGraphs()
    for compiled in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(8, 4)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        schedule = SCHEDULES[kind](optimizer)

        def step(x, model=model, optimizer=optimizer, schedule=schedule):
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            return loss.detach() * 2

        run = torch.compile(step, backend=backend, options={"recompile_limit": 1}) if compiled else step
        losses = [run(torch.randn(5, 8)) for _ in range(10)]
        found.append([*losses, *(value.detach() for value in model.parameters()), schedule.get_last_lr()])
    same(found[1], found[0])
    assert len(backend.graphs) == 2  # the loss, and what becomes of it


def test_the_loss_of_a_whole_step_is_one_graph():
    model = nn.Linear(8, 4)
    optimizer = torch.optim.Adam(model.parameters())
    backend = EagerAndRecordGraphs()
    step = torch.compile(make_step(model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2), False), backend=backend)
    for _ in range(3):
        step(torch.randn(5, 8), torch.randint(0, 4, (5,)))
    assert len(backend.graphs) == 1 and "cross_entropy" in backend.graphs[0].code


class WithSpareLayer(nn.Module):
    """A model one of whose layers gets no gradients."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last, self.spare = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4), nn.Linear(3, 3)

    def forward(self, x):
        return self.last(F.relu(self.norm(self.first(x))))


def groups_of(model):
    """Two groups: the second one with options of its own."""
    parameters = [*model.parameters()]
    return [{"params": parameters[:3]}, {"params": parameters[3:], "lr": 0.02}]


def plain_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def step_with_closure(model, optimizer, x, y):
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return optimizer.step(closure)


def step_after_two_backwards(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=False)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    F.cross_entropy(model(x * 0.5), y).backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.05)
    optimizer.step()
    return loss


def trained(kind, options, step, compiled, steps=10):
    """A model and its optimizer after steps whose learning rate changes at each."""
    torch.manual_seed(3)
    model = WithSpareLayer()
    optimizer = getattr(torch.optim, kind)(groups_of(model), **options)
    run = torch.compile(step, options={"recompile_limit": 1}) if compiled else step
    for number in range(steps):
        for group in optimizer.param_groups:
            group["lr"] *= 0.9 + 0.05 * (number % 2)
        run(model, optimizer, torch.randn(5, 8), torch.randint(0, 4, (5,)))
    return model, optimizer


def assert_trained_alike(ours, theirs, tolerance=2e-4):
    (one, mine), (other, yours) = ours, theirs
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)
    mine, yours = mine.state_dict(), yours.state_dict()
    assert [{**group, "capturable": None} for group in mine["param_groups"]] == [
        {**group, "capturable": None} for group in yours["param_groups"]
    ]
    assert mine["state"].keys() == yours["state"].keys()
    for number, state in yours["state"].items():
        assert mine["state"][number].keys() == state.keys()
        for name, value in state.items():
            found = mine["state"][number][name]
            np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=20 * tolerance, atol=tolerance)


ALL = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "Adafactor"]


@native
@pytest.mark.parametrize("step", [plain_step, step_with_closure, step_after_two_backwards])
@pytest.mark.parametrize("kind", ALL)
def test_ten_steps_are_one_native_call_for_each_group(kind, step, monkeypatch):
    calls = []

    @torch.compiler.disable
    def watched(kernel, rows, options):
        left = native_step(kernel, rows, options)
        calls.append((kernel, len(rows), left))
        return left

    native_step = per_parameter.optimizer_step
    monkeypatch.setattr(per_parameter, "optimizer_step", watched)
    options = {"lr": 1e-3 if kind in ("Adam", "Rprop") else 1e-2}
    ours = trained(kind, options, step, compiled=True)
    assert calls == [(calls[0][0], 3, []), (calls[0][0], 3, [])] * 10
    assert_trained_alike(ours, trained(kind, options, step, compiled=False))


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"])
def test_capturable_steps(kind):
    ours = trained(kind, {"capturable": True}, plain_step, compiled=True, steps=4)
    assert_trained_alike(ours, trained(kind, {}, plain_step, compiled=False, steps=4))


@pytest.mark.parametrize("kind", ["SGD", "NAdam", "Adafactor"])
def test_a_compiled_step_alone(kind):
    results = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = WithSpareLayer()
        optimizer = getattr(torch.optim, kind)(groups_of(model), lr=0.05)
        if compiled:
            optimizer.step = torch.compile(optimizer.step)
        for _ in range(4):
            plain_step(model, optimizer, torch.randn(5, 8), torch.randint(0, 4, (5,)))
        results.append((model, optimizer))
    assert_trained_alike(*results[::-1])


def lion_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.05)
    optimizer.step()
    return loss


def test_steps_with_a_scaler_are_captured_once():
    """Its count of steps, which changes at each, is nothing that a capture depends on."""
    model = nn.Linear(4, 2)
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu", init_scale=8.0)
    captured = []

    def backend(module, inputs):
        captured.append(module)
        return module

    @torch.compile(backend=backend)
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach() * 2

    step(torch.randn(3, 4)), step(torch.randn(3, 4))
    count = len(captured)
    for _ in range(3):
        step(torch.randn(3, 4))
    assert len(captured) == count


def test_an_optimizer_of_the_user_is_one_graph():
    results, graphs = [], []

    def backend(module, inputs):
        graphs.append(module.code)
        return module.forward

    for step in (lion_step, torch.compile(lion_step, backend=backend), torch.compile(lion_step)):
        torch.manual_seed(0)
        model = WithSpareLayer()
        model.spare.requires_grad_(False)
        optimizer = Lion([parameter for parameter in model.parameters() if parameter.requires_grad])
        for _ in range(5):
            step(model, optimizer, torch.randn(5, 8), torch.randint(0, 4, (5,)))
        results.append((model, optimizer))
    assert_trained_alike(results[1], results[0])
    assert_trained_alike(results[2], results[0])
    # The forward, then clipping with the first update, which makes the state, then with all later ones.
    assert len(graphs) == 3 and [graph.count("lerp_(") for graph in graphs] == [0, 6, 6]


class CountingAdam(torch.optim.Optimizer):
    """Kingma and Ba (2015), with a step count that is a Python number."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.01, "betas": (0.9, 0.999)})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                self.update(parameter, parameter.grad, group["lr"], *group["betas"])

    def update(self, parameter, gradient, lr, beta1, beta2):
        state = self.state[parameter]
        if not state:
            state.update(step=0, mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
        state["step"] += 1
        state["mean"].lerp_(gradient, 1 - beta1)
        state["square"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        scale = (state["square"] / (1 - beta2 ** state["step"])).sqrt_().add_(1e-8)
        parameter.addcdiv_(state["mean"], scale, value=-lr / (1 - beta1 ** state["step"]))


@pytest.mark.parametrize("kind, schedule", [(CountingAdam, False), (Lion, True)])
def test_steps_whose_numbers_always_change_are_left_to_python(kind, schedule):
    results, backend = [], EagerAndRecordGraphs()
    for compiled in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(8, 4)
        optimizer = kind(model.parameters())
        rates = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9 if schedule else 1.0)
        step = make_step(model, optimizer, rates, False)
        run = torch.compile(step, backend=backend) if compiled else step
        for _ in range(12):
            run(torch.randn(5, 8), torch.randint(0, 4, (5,)))
        results.append([value.detach() for value in model.parameters()])
    same(results[0], results[1], 1e-5)
    assert len(backend.graphs) <= 5
