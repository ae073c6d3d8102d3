"""Whole training steps in one compiled function: forward, backward and the optimizer's update go as in eager."""

from __future__ import annotations

import copy

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from tests.compiler.test_training import same

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.02, amsgrad=True),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, centered=True),
}


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


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_whole_step_goes_as_in_eager(kind, clip):
    torch.manual_seed(0)
    eager = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))
    ours, steps = copy.deepcopy(eager), []
    for model in (eager, ours):
        optimizer = OPTIMIZERS[kind](model.parameters())
        steps.append(make_step(model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5), clip))
    fast = torch.compile(steps[1], options={"recompile_limit": 1})
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
