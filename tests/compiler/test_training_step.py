"""Whole training steps in one compiled function: forward, backward and the optimizer's update go as in eager."""

from __future__ import annotations

import copy

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from tests.compiler.test_training import same


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


def test_the_loss_of_a_whole_step_is_one_graph():
    model = nn.Linear(8, 4)
    optimizer = torch.optim.Adam(model.parameters())
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    step = torch.compile(make_step(model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2), False), backend=backend)
    for _ in range(3):
        step(torch.randn(5, 8), torch.randint(0, 4, (5,)))
    assert len(graphs) == 1 and "cross_entropy" in graphs[0].code
