"""Graphs that draw random numbers: the seed as an input, which each call draws from the default generator.

In: a graph with a `_philox_seed` node. Out: the same graph over one more input. Stage: inductor, before the graph is cut.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight._C import GraphLaunch
from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.ops.registry import aten

SEED = aten("_philox_seed")


def with_seed_input(module: GraphModule) -> GraphModule | None:
    """A copy of the graph that takes its seed as its last input; None for a graph that draws none."""
    if not any(node.target is SEED for node in module.graph.nodes):
        return None
    graph, copied = Graph(), {}
    seeds = [node for node in module.graph.nodes if node.target is SEED]
    for node in module.graph.nodes:
        if node.op == "placeholder":
            copied[node] = graph.node_copy(node, copied.__getitem__)
    for node in seeds:
        copied[node] = _seed_input(graph, node)
    for node in module.graph.nodes:
        if node not in copied:
            copied[node] = graph.node_copy(node, copied.__getitem__)
    made = GraphModule(module, graph, type(module).__name__)
    made.meta = dict(module.meta)
    return made


def _seed_input(graph: Graph, node: Node) -> Node:
    made = graph.placeholder(node.name)
    made.meta = dict(node.meta)
    return made


def seeded(run: Callable[..., tuple]) -> Callable[..., tuple]:
    """`run`, called with a new seed after its other inputs."""
    if type(run) is GraphLaunch:
        run.supply_last(SEED)
        return run

    def with_new_seed(*inputs: Tensor | int) -> tuple:
        return run(*inputs, SEED())

    return with_new_seed
