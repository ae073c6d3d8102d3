"""Analyse what each tangent of a backward graph is used for, so that a program's results can be differentiated one by one.

In: a partition. Out: for each gradient, the tangents that it depends on; for each tangent, the saved values that its gradients
are computed from, and the tangents that it meets in an operation which reads a saved value. In eager such tangents share a
node, whose saved values the first backward frees. Also the backward graph of some tangents alone, which reads nothing that
belongs to the others. A tangent is the gradient of one of the program's outputs, an input of the backward graph. Stage: aot,
after the partition.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.aot.memory import is_size
from rushlight.aot.partition import Partition
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.symbolic_sizes import name_symbols
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten

Numbers = frozenset[int]


@dataclass(frozen=True)
class Tangents:
    """The result of `follow_tangents`. `reached` has for each gradient the tangents that it depends on. `read` has for each
    tangent the saved values that are read, `met` the tangents that it meets, including itself."""

    reached: list[Numbers]
    read: list[Numbers]
    met: list[Numbers]


def follow_tangents(partition: Partition) -> Tangents:
    """Find the gradients, saved values and other tangents that each tangent of a backward graph meets."""
    graph, count = partition.backward.graph, len(partition.saved)
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    reached = _origins(graph.nodes, placeholders[count:])
    kept = [None if is_size(node) else node for node in placeholders[:count]]
    sources = _origins([node for node in graph.nodes if node not in reached], kept)
    read = [set() for _ in placeholders[count:]]
    met = [{number} for number in range(len(read))]
    for node, numbers in reached.items():
        values = frozenset().union(*(sources.get(used, ()) for used in node.all_input_nodes)) if node.op != "output" else ()
        for number in numbers if values else ():
            read[number] |= values
            met[number] |= numbers
    gradients = [reached.get(node, frozenset()) for node in graph.output_node().args[0]]
    return Tangents(gradients, [frozenset(each) for each in read], [frozenset(each) for each in met])


@dataclass(frozen=True)
class BackwardPart:
    """The backward of some tangents: `module(*saved, *tangents)` takes the saved values with the numbers in `saved`, and
    returns the gradients with the numbers in `gradients`."""

    module: GraphModule
    saved: list[int]
    gradients: list[int]


def backward_of(partition: Partition, arrived: Numbers) -> BackwardPart:
    """Extract the backward graph of these tangents alone.

    Values that depend only on other tangents are not computed, as in eager; zeros replace them where they are added to computed
    values. Multiplying with tangents of zeros would be wrong: the other factor may be infinite.
    """
    source, count = partition.backward.graph, len(partition.saved)
    placeholders = [node for node in source.nodes if node.op == "placeholder"]
    origins = _origins(source.nodes, placeholders[count:])
    missing = {node for node, numbers in origins.items() if not numbers & arrived}
    graph, copies = Graph(), {}

    def copied(node: Node) -> Node:
        if node not in copies:
            copies[node] = _zeros(graph, node.meta["val"])
        return copies[node]

    for node in source.nodes:
        if node.op != "output" and node not in missing:
            copies[node] = graph.node_copy(node, copied)
    found = list(enumerate(source.output_node().args[0]))
    gradients = [(number, node) for number, node in found if isinstance(node, Node) and node not in missing]
    graph.output(tuple([copies[node] for _, node in gradients]))
    name_symbols(graph)
    graph.eliminate_dead_code()
    saved = [number for number, node in enumerate(placeholders[:count]) if copies[node].users]
    for node in placeholders[:count]:
        if not copies[node].users:
            graph.erase_node(copies[node])
    return BackwardPart(GraphModule(partition.backward, graph, "backward"), saved, [number for number, _ in gradients])


def _zeros(graph: Graph, like: Tensor) -> Node:
    """Add a node of zeros with the strides of a tensor, if these are known."""
    sizes, strides = like.shape, like.stride()
    is_known = not any(type(number) is SymInt for number in (*sizes, *strides))
    order = sorted(range(len(sizes)), key=lambda dim: strides[dim], reverse=True) if is_known else list(range(len(sizes)))
    options = {"dtype": like.dtype, "device": like.device}
    rows = _add_call(graph, aten("full"), ([sizes[dim] for dim in order], 0), options, ())
    if order == list(range(len(sizes))):
        return rows
    return _add_call(graph, aten("permute"), (rows, [order.index(dim) for dim in range(len(sizes))]), {}, (rows.meta["val"],))


def _add_call(graph: Graph, op: OpOverload, args: tuple, kwargs: dict, values_of_nodes: tuple[Tensor, ...]) -> Node:
    """Add a call to the graph, with its result's fake tensor. `values_of_nodes` are those of the first arguments, which are
    nodes."""
    node = graph.call_function(op, args, kwargs)
    with FakeTensorMode():
        node.meta["val"] = op(*values_of_nodes, *args[len(values_of_nodes) :], **kwargs)
    return node


def _origins(nodes: list[Node], starts: list[Node | None]) -> dict[Node, Numbers]:
    """Return, for each node that depends on any of `starts`, the indices of those."""
    origins = {node: frozenset([number]) for number, node in enumerate(starts) if node is not None}
    for node in nodes:
        if node.op == "call_function":
            found = frozenset().union(*(origins.get(used, ()) for used in node.all_input_nodes))
            if found:
                origins[node] = found
    return origins
