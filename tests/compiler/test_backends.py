"""Backends by name and as callables, and the passes that run before them."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler import list_backends, register_backend
from rushlight.compiler.backends import _BACKENDS


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def block(x, weight):
    return (x @ weight).relu().softmax(-1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_backends_by_name_agree(backend):
    x, weight = torch.randn(3, 4), torch.randn(4, 5)
    assert (torch.compile(block, backend=backend)(x, weight) - block(x, weight)).abs().max() < 1e-6


def test_an_unknown_backend_lists_the_known_ones():
    assert list_backends() == ["aot_eager", "eager", "inductor"]
    with pytest.raises(ValueError, match="'tvm'.*aot_eager, eager, inductor"):
        torch.compile(block, backend="tvm")


def test_a_registered_backend_is_found_by_its_name():
    calls = []

    @register_backend
    def printing(module, example_inputs):
        calls.append([tuple(tensor.shape) for tensor in example_inputs])
        return module.forward

    try:
        torch.compile(block, backend="printing")(torch.ones(3, 4), torch.ones(4, 5))
        assert calls == [[(3, 4), (4, 5)]] and "printing" in list_backends()
    finally:
        del _BACKENDS["printing"]


def without_dropout(module, example_inputs):
    """Replace each dropout by its input, as a user would write it."""
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten.native_dropout.default:
            for element in list(node.users):
                element.replace_all_uses_with(node.args[0])
                module.graph.erase_node(element)
            module.graph.erase_node(node)
    module.graph.lint()
    module.recompile()
    return module.forward


def test_a_backend_may_edit_the_graph():
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    x = torch.randn(3, 4)
    without = nn.Sequential(model[0], model[2])
    assert (torch.compile(model, backend=without_dropout)(x) - without(x)).abs().max() < 1e-6


def test_a_backend_gets_a_graph_without_writes():
    seen = []

    def backend(module, example_inputs):
        seen.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
        return module.forward

    def accumulate(x):
        total = torch.zeros(3)
        for row in x.unbind(0):
            total += row
        total[0] = 7
        return total

    x = torch.arange(6.0).reshape(2, 3)
    assert torch.compile(accumulate, backend=backend)(x).tolist() == accumulate(x).tolist()
    assert "aten.add.Tensor" in seen and not any("_." in name for name in seen)


def test_an_error_in_a_backend_is_the_callers():
    def broken(module, example_inputs):
        raise LookupError("cannot")

    with pytest.raises(LookupError, match="cannot"):
        torch.compile(block, backend=broken)(torch.ones(3, 4), torch.ones(4, 5))
