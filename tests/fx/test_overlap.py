"""The order of graphs with collectives: begin early, wait late, in pieces that the backend runs meanwhile."""

from __future__ import annotations

import rushlight as rl
import rushlight.distributed.functional_operators as operators
from rushlight.fx import Graph, GraphModule
from rushlight.fx.passes.split import split_by_support
from rushlight.ops import aten

functional = operators.functional


def segments(graph: Graph) -> list[str]:
    """Return the calls of the split graph, pieces with what they run."""
    module = GraphModule({}, graph)
    split = split_by_support(module, lambda node: getattr(node.target, "namespace", "") == "aten")
    found = []
    for node in split.graph.nodes:
        if node.op == "call_module":
            inner = split.get_submodule(node.target).graph
            found.append("[" + " ".join(each.name for each in inner.nodes if each.op == "call_function") + "]")
        elif node.op == "call_function" and node.target.__class__.__name__ == "OpOverload":
            found.append(node.name)
    return found


def reduced(graph: Graph, node):
    begun = graph.call_function(functional.all_reduce.default, (node, "sum", "0"))
    return graph.call_function(functional.wait_tensor.default, (begun,))


def test_work_runs_between_a_collective_and_its_wait():
    graph = Graph()
    x = graph.placeholder("x")
    first = reduced(graph, graph.call_function(aten.relu.default, (x,)))
    other = graph.call_function(aten.exp.default, (x,))
    graph.output(graph.call_function(aten.add.Tensor, (first, other)))
    assert segments(graph) == ["[relu]", "all_reduce", "[exp]", "wait_tensor", "[add]"]


def test_each_collective_begins_when_its_input_is_there():
    """As gradients in a backward pass: a piece ends where the next reduction can begin."""
    graph = Graph()
    value, waits = graph.placeholder("x"), []
    for _ in range(3):
        value = graph.call_function(aten.relu.default, (value,))
        waits.append(reduced(graph, value))
    graph.output(tuple(waits))
    assert segments(graph) == [
        "[relu]", "all_reduce", "[relu_1]", "all_reduce_1", "[relu_2]", "all_reduce_2", "wait_tensor", "wait_tensor_1",
        "wait_tensor_2",
    ]  # fmt: skip


def test_a_collective_that_needs_another_comes_after_its_wait():
    graph = Graph()
    x = graph.placeholder("x")
    first = reduced(graph, x)
    second = reduced(graph, graph.call_function(aten.relu.default, (first,)))
    graph.output((second, graph.call_function(aten.exp.default, (x,))))
    assert segments(graph) == ["all_reduce", "[exp]", "wait_tensor", "[relu]", "all_reduce_1", "wait_tensor_1"]


def test_graphs_without_collectives_keep_their_order():
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(aten.relu.default, (graph.call_function(aten.exp.default, (x,)),)))
    assert segments(graph) == ["[exp relu]"]
    assert rl.ops._c10d_functional.wait_tensor.default is functional.wait_tensor.default
