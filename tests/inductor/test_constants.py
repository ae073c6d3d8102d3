"""Constants of compiled graphs: packed when a second call meets them unchanged, read in the course of a run before; their names."""

from __future__ import annotations

import threading
import warnings

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.inductor import observed
from rushlight.inductor.compiled import CompiledGraph


class Layers(nn.Module):
    """Products of float and bfloat16 weights, an unfolded and a folded convolution, and a weight that two products read."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1))
        self.first = nn.Linear(4 * 6 * 6, 48)
        self.shared = nn.Linear(48, 48)
        self.last = nn.Linear(48, 10, dtype=torch.bfloat16)
        self.image[1].running_mean.uniform_()

    def forward(self, x):
        x = self.first(self.image(x).flatten(1))
        x = self.shared(self.shared(x).relu())
        return self.last(x.to(torch.bfloat16)).to(torch.float32)


def compiled(model, *inputs):
    """The compiled model after its first call, and the graph that it runs."""
    before = set(map(id, observed._graphs))
    run = torch.compile(model)
    with torch.inference_mode():
        result = run(*inputs)
    (graph,) = (graph for graph in observed._graphs if id(graph) not in before)
    return run, graph, result


def close(left, right):
    torch.testing.assert_close(left, right, rtol=2e-2, atol=2e-2)


def test_first_call_packs_as_it_goes_and_the_second_for_good():
    model, x = Layers().eval(), torch.randn(2, 3, 6, 6)
    with torch.inference_mode():
        wanted = model(x)
    run, graph, first = compiled(model, x)
    assert graph.plan.packed and graph.plan.folded
    assert graph._prepared is None
    with torch.inference_mode():
        second = run(x)
        packed = graph._prepared
        third = run(x)
    close(first, wanted)
    assert len(packed.memory) == len(graph.plan.folded) + 1  # one block holds all that is packed
    assert packed.memory[-1].nbytes >= sum(graph.plan.packed)
    assert graph._prepared is packed
    assert torch.equal(first, second) and torch.equal(second, third)


def test_changed_constants_are_packed_again_at_their_second_call():
    model, x = Layers().eval(), torch.randn(2, 3, 6, 6)
    run, graph, _ = compiled(model, x)
    with torch.inference_mode():
        run(x)
    for _ in range(3):
        before = graph._prepared
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.1)
        with torch.inference_mode():
            wanted = model(x)
            close(run(x), wanted)
            assert graph._prepared is before
            close(run(x), wanted)
            assert graph._prepared is not before
            close(run(x), wanted)


def test_first_calls_of_several_threads_do_not_share_memory():
    model = Layers().eval()
    inputs = [torch.randn(2, 3, 6, 6) for _ in range(8)]
    with torch.inference_mode():
        wanted = [model(x) for x in inputs]
    run, _, _ = compiled(model, inputs[0])
    found: dict[int, torch.Tensor] = {}
    start = threading.Barrier(len(inputs))

    def call(number: int) -> None:
        start.wait()
        with torch.inference_mode():
            found[number] = run(inputs[number])

    for _ in range(5):
        with torch.no_grad():
            model.first.weight.add_(0.0)  # a new version of the same values
        start.reset()
        threads = [threading.Thread(target=call, args=(number,)) for number in range(len(inputs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, want in enumerate(wanted):
            close(found[number], want)


@pytest.mark.parametrize("name", [
    "panels", "status", "at", "at_", "clock", "template", "operator", "kernel_0", "buf0", "rl", "unsigned", "errno", "arena", "lane",
])  # fmt: skip
def test_parameters_may_have_any_name(name):
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.at = nn.Parameter(torch.randn(16, 16))
            self.register_parameter(name, nn.Parameter(torch.randn(16, 16)))

        def forward(self, x):
            weight = getattr(self, name)
            return torch.tanh(x @ weight + self.at[0]) @ self.at + weight[0]

    model, x = Scale(), torch.randn(4, 16)
    _, graph, result = compiled(model, x)
    assert isinstance(graph, CompiledGraph)
    with torch.inference_mode():
        close(result, model(x))


def test_what_is_made_of_constants_and_open_sizes_is_no_constant():
    """The index is a constant, but the size around which a negative one wraps is only known in a call."""
    compiled = torch.compile(lambda x: x.index_fill(1, torch.tensor([0, -1]), 1), dynamic=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for width in (5, 7):
            assert compiled(torch.zeros(2, width)).tolist() == [[1.0, *[0.0] * (width - 2), 1.0]] * 2
    assert not [warning for warning in caught if "interpreter" in str(warning.message)]
