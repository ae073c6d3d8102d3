"""Calls that a capture follows more than once: what it remembers of the first one must hold for the others."""

from __future__ import annotations

import rushlight as torch
from rushlight.nn import functional as F


def captured(function, *inputs):
    """The nodes of calls in the graph of a function, and its results in eager beside those of the graph."""
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    with torch.inference_mode():
        results = torch.compile(function, backend=backend, fullgraph=True)(*inputs)
        wanted = function(*inputs)
    assert len(graphs) == 1
    return [node for node in graphs[0].graph.nodes if node.op.startswith("call")], results, wanted


def looks(tensor):
    return tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())


def assert_nodes_are_as_in_eager(nodes, results, wanted):
    assert len(nodes) == len(results) == len(wanted)
    for node, result, expected in zip(nodes, results, wanted, strict=True):
        assert looks(node.meta["val"]) == looks(result) == looks(expected)
        assert torch.equal(result, expected)


def test_equal_calls_give_tensors_of_their_own():
    def function(x, weight):
        return F.linear(x, weight), F.linear(x, weight), F.linear(x + 1, weight)

    nodes, results, wanted = captured(function, torch.ones(3, 4), torch.ones(5, 4))
    assert all(torch.equal(result, expected) for result, expected in zip(results, wanted, strict=True))
    fakes = [node.meta["val"] for node in nodes if node.target is F.linear]
    assert len(fakes) == len({id(fake._impl.storage) for fake in fakes}) == 3
    assert len({looks(fake) for fake in fakes}) == 1


def test_numbers_that_are_equal_but_of_different_types():
    def function(x):
        return torch.add(x, 1), torch.add(x, 1.0), torch.add(x, True), torch.add(x, 1), torch.add(x, 1.0)

    assert_nodes_are_as_in_eager(*captured(function, torch.arange(6)))
    assert_nodes_are_as_in_eager(*captured(function, torch.arange(6) > 2))


def test_arguments_that_differ_in_dtype_strides_or_sizes():
    def function(x, y, z):
        return torch.relu(x), torch.relu(y), torch.relu(z), torch.relu(x), torch.relu(y), torch.relu(z)

    x = torch.randn(4, 4)
    assert_nodes_are_as_in_eager(*captured(function, x, x.t(), x.double()))
    assert_nodes_are_as_in_eager(*captured(function, x, x[:2], x[:, ::2]))


def test_options_by_name():
    def function(x):
        return torch.sum(x, dim=0), torch.sum(x, dim=1), torch.sum(x, dim=1, keepdim=True), torch.sum(x, dim=1)

    assert_nodes_are_as_in_eager(*captured(function, torch.randn(3, 5)))


def test_views_share_memory_each_time():
    def function(x):
        return torch.transpose(x, 0, 1), torch.transpose(x, 0, 1)

    nodes, _, _ = captured(function, torch.randn(3, 5))
    storages = {id(node.meta["val"]._impl.storage) for node in nodes}
    assert len(storages) == 1 and id(nodes[0].args[0].meta["val"]._impl.storage) in storages


def test_random_numbers_are_noted_each_time():
    def function(x):
        return F.dropout(x, 0.5, True) + F.dropout(x, 0.5, True)

    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    with torch.no_grad():
        torch.compile(function, backend=backend)(torch.ones(8))
    drawn = [node.meta.get("draws_random_numbers") for node in graphs[0].graph.nodes if node.target is F.dropout]
    assert drawn == [True, True]


def test_writes_are_noted_each_time():
    def function(x):
        return F.relu(F.relu(x) - 1, inplace=True), F.relu(F.relu(x) - 1, inplace=True)

    nodes, results, wanted = captured(function, torch.randn(4, 3))
    assert all(torch.equal(result, expected) for result, expected in zip(results, wanted, strict=True))
    written = [node.meta.get("writes_arguments") for node in nodes if node.target is F.relu]
    assert written == [None, True, None, True]


def test_open_sizes_stay_open():
    def function(x, weight):
        return F.relu(F.relu(x) + F.relu(x)) @ weight

    compiled = torch.compile(function, backend="eager", dynamic=True, fullgraph=True)
    with torch.inference_mode():
        for rows in (3, 5, 7):
            x, weight = torch.randn(rows, 4), torch.randn(4, 2)
            assert torch.equal(compiled(x, weight), function(x, weight))
