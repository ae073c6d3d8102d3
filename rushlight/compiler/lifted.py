"""Lifted graphs, as PyTorch passes them to users' backends: parameters and buffers are inputs, like all other tensors.

In: dynamo's GraphModule, whose attributes are modules' tensors. Out: one with placeholders for them, named by their path
(`L_self_modules_linear_parameters_weight_`). The project's own backends keep the attributes as constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node


def lift_attributes(module: GraphModule) -> GraphModule:
    """Return the same program with placeholders for all tensors that the user's code reaches.

    Their order is that of the calls using them, a call's parameters before its other inputs. Tensors that the program cannot
    reach, such as literals, stay attributes. `meta["lifted"]` of a placeholder is the name of its former attribute.
    """
    graph, made = Graph(), {}
    for node in _inputs_in_order(module.graph):
        made[node] = copy = graph.placeholder(node.meta.get("input_name", node.target))
        copy.meta = dict(node.meta)
        if node.op == "get_attr":
            copy.meta["lifted"] = node.target
            copy.type = type(getattr(module, node.target))
        else:
            copy.type = node.type
    output = graph.graph_copy(module.graph, made)
    graph.output(output)
    lifted = GraphModule(module, graph)
    lifted.meta = dict(module.meta)
    return lifted


def run_lifted(backend: Callable, module: GraphModule, inputs: list[Any]) -> Callable:
    """Compile the lifted module with a backend; returns a callable over the original module's inputs."""
    lifted = lift_attributes(module)
    positions = {node.target: index for index, node in enumerate(module.graph.find_nodes(op="placeholder"))}
    order = [
        getattr(module, node.meta["lifted"]) if "lifted" in node.meta else positions[node.target]
        for node in lifted.graph.find_nodes(op="placeholder")
    ]  # fmt: skip
    made = backend(lifted, _arrange_inputs(order, inputs))
    if not callable(made) or all(type(place) is int for place in order) and order == sorted(order):
        return made
    return lambda *given: made(*_arrange_inputs(order, given))


def _arrange_inputs(order: list[Any], given: Any) -> list[Any]:
    """Return the lifted module's inputs: inputs by position, and the constant tensors."""
    return [given[place] if type(place) is int else place for place in order]


def _inputs_in_order(graph: Graph) -> Iterator[Node]:
    """Yield the inputs and named attributes, in the order of the calls that use them."""
    seen: set[Node] = set()
    for user in graph.nodes:
        used = [node for node in user.all_input_nodes if node.op == "placeholder" or "input_name" in node.meta]
        for node in sorted(used, key=lambda node: node.op == "placeholder"):
            if node not in seen:
                seen.add(node)
                yield node
    yield from (node for node in graph.find_nodes(op="placeholder") if node not in seen)
