"""Compiled programs whose parameters change: written to, replaced by others of the same kind, and of another dtype or layout."""

from __future__ import annotations

import threading

import pytest

import rushlight as torch
from rushlight._C import GraphLaunch
from rushlight.dynamo.frames import debug_cache_entries


def launch_of(compiled):
    """What the compiled function's code calls."""
    (entry,) = debug_cache_entries(compiled)
    return entry.guarded_code.globals[entry.guarded_code.graph_name]


class Dropping(torch.nn.Module):
    """Half of what is left of x * weight."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64))

    def forward(self, x):
        return torch.nn.functional.dropout(x * self.weight, 0.5)


@pytest.fixture
def layer():
    """A layer, and the same compiled; gradients are off."""
    with torch.no_grad():
        layer = torch.nn.Linear(4, 4, bias=False)
        yield layer.weight, torch.compile(lambda x: layer(x).relu() + 1)


def check(weight, compiled, x):
    for _ in range(3):
        expected = torch.nn.functional.linear(x, weight).relu() + 1
        torch.testing.assert_close(compiled(x), expected)


def test_parameters_of_the_same_kind(layer):
    weight, compiled = layer
    x = torch.randn(2, 4)
    check(weight, compiled, x)
    assert type(launch_of(compiled)) is GraphLaunch
    for change in (lambda: weight.mul_(2), lambda: setattr(weight, "data", torch.randn(4, 4)), lambda: weight.zero_()):
        change()
        check(weight, compiled, x)


def test_parameters_of_another_layout_are_compiled_anew(layer):
    weight, compiled = layer
    x = torch.randn(2, 4)
    first = weight.data
    check(weight, compiled, x)
    launch = launch_of(compiled)
    for other in (torch.randn(4, 4).t(), torch.randn(4, 4)[:, ::1], torch.randn(4, 8)[:, ::2], first):
        weight._impl.replace_geometry(other._impl.storage, other._impl.sizes, other._impl.strides, other._impl.storage_offset)
        torch.testing.assert_close(launch(x)[0], torch.nn.functional.linear(x, weight).relu() + 1)
        torch.testing.assert_close(launch(x)[0], torch.nn.functional.linear(x, weight).relu() + 1)


def test_a_graph_that_draws_is_compiled_anew():
    with torch.no_grad():
        model = Dropping()
        weight, compiled, x = model.weight, torch.compile(lambda x: model(x)), torch.ones(64)
        compiled(x), compiled(x)
        launch = launch_of(compiled)
        other = torch.full((128,), 3.0)[::2]
        weight._impl.replace_geometry(other._impl.storage, (64,), (2,), 0)
        for _ in range(3):
            torch.manual_seed(5)
            (found,) = launch(x)
            torch.manual_seed(5)
            assert set(found.tolist()) == {0.0, 6.0} and torch.equal(launch(x)[0], found)


def test_threads_meet_a_changed_layout(layer):
    weight, compiled = layer
    x = torch.eye(4)
    check(weight, compiled, x)
    launch = launch_of(compiled)
    other = torch.full((4, 8), 2.0)[:, ::2]
    weight._impl.replace_geometry(other._impl.storage, other._impl.sizes, other._impl.strides, 0)
    wrong = []

    def call():
        with torch.no_grad():
            for _ in range(50):
                (found,) = launch(x)
                if found.tolist() != [[3.0] * 4] * 4:
                    wrong.append(found)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# Writes that version counters do not tell


@pytest.mark.parametrize("change", [
    lambda weight: weight.data.mul_(2), lambda weight: weight.data.view(-1)[3:5].fill_(7.0),
    lambda weight: weight.data.copy_(torch.randn(4, 4)), lambda weight: torch.compile(lambda x: x.add_(1))(weight.data),
], ids=["write", "part", "copy", "compiled"])
def test_writes_through_data(layer, change):
    weight, compiled = layer
    x = torch.randn(2, 4)
    check(weight, compiled, x)
    change(weight)
    check(weight, compiled, x)


def test_writes_through_data_that_was_taken_before(layer):
    weight, compiled = layer
    x, data = torch.randn(2, 4), weight.data
    for _ in range(3):
        check(weight, compiled, x)
        data.mul_(0.5)
    other = torch.zeros(4, 4)
    other.data = data
    check(weight, compiled, x)
    other.add_(1)
    check(weight, compiled, x)


def test_running_statistics_that_eager_moves():
    """Their version counters stay, as in torch."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    compiled, x = torch.compile(model), torch.randn(3, 4)
    for _ in range(3):
        model.train()
        model(torch.randn(8, 4) * 3 + 1)
        model.eval()
        with torch.no_grad():
            for _ in range(3):
                torch.testing.assert_close(compiled(x), model(x))
