"""Scripted modules train: the losses are those of the same module in eager."""

from __future__ import annotations

import copy

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


class Perceptron(nn.Module):
    """Two layers with dropout that is off."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x)


class Convolutional(nn.Module):
    """A convolution with batch statistics. It has no bias: the gradient of one would be 0 but for rounding, which Adam scales up."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 2, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        x = x.view(x.size(0), 1, 2, 3)
        return self.out(F.relu(self.norm(self.conv(x))).flatten(1))


class Recurrent(nn.Module):
    """A loop over a cell, with a branch on the data."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(2, 5)
        self.out = nn.Linear(5, 3)

    def forward(self, x):
        steps = x.view(x.size(0), 3, 2)
        state = torch.zeros(x.size(0), 5)
        for t in range(steps.size(1)):
            state = self.cell(steps[:, t], state)
            if bool(state.sum() > 100):
                state = state * 0
        return self.out(state)


def losses(module: nn.Module, steps: int = 12) -> list[float]:
    """The losses of some steps of Adam on fixed data."""
    torch.manual_seed(3)
    x, y = torch.randn(10, 6), torch.arange(10) % 3
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("kind", [Perceptron, Convolutional, Recurrent])
def test_a_scripted_module_trains_to_the_losses_of_eager(kind):
    torch.manual_seed(0)
    module = kind()
    eager = copy.deepcopy(module)
    wanted, found = losses(eager), losses(torch.jit.script(module))
    assert wanted[-1] < wanted[0] * 0.8
    torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted), atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(dict(module.state_dict()), dict(eager.state_dict()), atol=1e-3, rtol=1e-3)
