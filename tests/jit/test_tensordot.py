"""`tensordot` in scripted code, by a number, a tuple or a list of dimensions; graphs of traces; types by their names."""

from __future__ import annotations

import rushlight as torch


def products(a, b):
    return torch.tensordot(a, b, ([1], [0])), torch.tensordot(a, b, [[1], [0]]), torch.tensordot(a, b, 1), torch.tensordot(a, b)


def test_tensordot():
    a, b = torch.randn(3, 3), torch.randn(3, 3)
    for found, expected in zip(torch.jit.script(products)(a, b), products(a, b), strict=True):
        assert torch.equal(found, expected)


def test_the_graph_of_a_trace():
    module, x = torch.nn.Linear(2, 3), torch.ones(1, 2)
    graph, result = torch.jit._get_trace_graph(module, (x,))
    assert torch.equal(result, module(x)) and "aten::linear" in str(graph)


def test_types_by_name():
    graph = torch.jit.script(products).graph
    assert next(graph.inputs()).type() == torch.TensorType.get()
    assert str(torch.IntType.get()) == "int" and isinstance(torch.IntType.get(), torch.IntType)
    assert not isinstance(torch.IntType.get(), torch.FloatType) and str(torch.ListType(torch.IntType.get())) == "List[int]"
