"""Backends by name and as callables, and the passes that run before them."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler import list_backends, register_backend
from rushlight.compiler.backends import unregister_backend


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
        unregister_backend("printing")


def without_dropout(module, example_inputs):
    """Replace each dropout by its input, as a user would write it."""
    for node in module.graph.nodes:
        if node.target is torch.nn.functional.dropout:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    module.graph.lint()
    module.recompile()
    return module.forward


def test_a_backend_may_edit_the_graph():
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    x = torch.randn(3, 4)
    without = nn.Sequential(model[0], model[2])
    assert (torch.compile(model, backend=without_dropout)(x) - without(x)).abs().max() < 1e-6


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_writes_to_memory(backend):
    def accumulate(x, seen):
        total = torch.zeros(3)
        for row in x.unbind(0):
            total += row
        total[0] = 7
        seen.add_(total)
        return total

    compiled = torch.compile(accumulate, backend=backend)
    for _ in range(3):
        x = torch.arange(6.0).reshape(2, 3)
        seen, wanted = torch.zeros(3), torch.zeros(3)
        assert compiled(x, seen).tolist() == accumulate(x, wanted).tolist()
        assert seen.tolist() == wanted.tolist()


def test_inputs_that_share_memory_otherwise_than_at_capture():
    def shift(x, y):
        x.add_(1)
        return y * 2

    compiled = torch.compile(shift)
    for _ in range(2):
        for start, end in ((0, 4), (4, 8), (2, 6)):
            memory = torch.zeros(8)
            eager = torch.zeros(8)
            result, wanted = compiled(memory[:4], memory[start:end]), shift(eager[:4], eager[start:end])
            assert result.tolist() == wanted.tolist() and memory.tolist() == eager.tolist()


def test_an_error_in_a_backend_says_so():
    def broken(module, example_inputs):
        raise LookupError("cannot")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"backend='broken' raised:\nLookupError: cannot") as seen:
        torch.compile(block, backend=broken)(torch.ones(3, 4), torch.ones(4, 5))
    assert isinstance(seen.value.__cause__, LookupError)


def test_a_backend_that_returns_no_callable():
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="returns a callable, got NoneType"):
        torch.compile(block, backend=lambda module, inputs: None)(torch.ones(3, 4), torch.ones(4, 5))
    with pytest.raises(TypeError, match="a backend's name or a callable, got int"):
        torch.compile(block, backend=3)


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="named 'eager' exists"):
        register_backend(lambda module, inputs: module.forward, "eager")


def test_one_function_with_two_backends():
    graphs = {"one": [], "other": []}

    def backend(name):
        return lambda module, inputs: (graphs[name].append(module), module.forward)[1]

    one, other = torch.compile(block, backend=backend("one")), torch.compile(block, backend=backend("other"))
    for compiled in (one, other, one, other):
        compiled(torch.ones(3, 4), torch.ones(4, 5))
    assert len(graphs["one"]) == len(graphs["other"]) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_writes_by_functions_whose_result_is_not_used(backend, mode):
    def function(x):
        y = x * 1
        part = y[:2]
        torch.nn.functional.relu(part, inplace=True)
        part.add_(1)
        x.mul_(2)
        return y

    with mode():
        compiled = torch.compile(function, backend=backend, fullgraph=True)
        for _ in range(2):
            one, other = torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([-1.0, -2.0, -3.0])
            assert compiled(one).tolist() == function(other).tolist() and one.tolist() == other.tolist()


def test_tensors_without_data():
    def function(x):
        return x @ x.t() + torch.ones(3, device="meta"), x.sum()

    product, total = torch.compile(function)(torch.empty(3, 4, device="meta"))
    assert product.device.type == total.device.type == "meta" and product.shape == (3, 3) and total.shape == ()
    x = torch.empty(3, device="meta", requires_grad=True)
    with torch.enable_grad():
        torch.compile(lambda x: (x * 2).sum())(x).backward()
    assert x.grad.device.type == "meta" and x.grad.shape == (3,)
