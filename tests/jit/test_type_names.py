"""The types of TorchScript by their names, and the graph of a trace."""

from __future__ import annotations

import rushlight as torch


def test_the_graph_of_a_trace():
    module, x = torch.nn.Linear(2, 3), torch.ones(1, 2)
    graph, result = torch.jit._get_trace_graph(module, (x,))
    assert torch.equal(result, module(x)) and "aten::linear" in str(graph)


def test_state_is_an_input_of_the_graph_of_a_trace():
    module, x = torch.nn.Linear(2, 3), torch.ones(1, 2)
    graph, result, given = torch.jit._get_trace_graph(module, x, return_inputs=True)
    inputs = str(graph).partition("):")[0]
    assert "Float(1, 2, " in inputs and "Float(3, 2, " in inputs and "Float(3, strides" in inputs and "self" not in inputs
    assert torch.equal(result, module(x)) and given == (x,)


def test_the_graph_of_a_trace_becomes_a_function():
    graph, result = torch.jit._get_trace_graph(lambda x, y: x * 2 + y, (torch.ones(2), torch.ones(2)))
    assert isinstance(graph, torch._C.Graph)
    made = torch._C._create_function_from_graph("forward", graph)
    assert made(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 0.5])).tolist() == [3.0, 8.5]


def test_types_by_name():
    graph = torch.jit.script(torch.nn.ReLU()).graph
    assert list(graph.inputs())[1].type() == torch.TensorType.get()
    assert str(torch.IntType.get()) == "int" and isinstance(torch.IntType.get(), torch.IntType)
    assert not isinstance(torch.IntType.get(), torch.FloatType) and str(torch.ListType(torch.IntType.get())) == "List[int]"
