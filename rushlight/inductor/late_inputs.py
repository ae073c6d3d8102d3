"""Replace nodes of a graph by additional inputs at the end: values that each call gets besides the program's own inputs.

In: a graph, and nodes of it without arguments. Out: the same graph with more inputs. There are two kinds of such nodes. One is
the seed for random numbers, which each call draws from the default generator. The others are constants that the graph mutates,
because generated code assumes that constants do not change. Stage: inductor, before the graph is split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight._C import GraphLaunch
from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.ops.registry import aten

SEED = aten("_philox_seed")


def as_last_inputs(module: GraphModule, nodes: Sequence[Node]) -> GraphModule:
    """Return a copy of the graph in which inputs at the end replace `nodes`."""
    graph, copied = Graph(), {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            copied[node] = graph.node_copy(node, copied.__getitem__)
    for node in nodes:
        made = copied[node] = graph.placeholder(node.name)
        made.meta = dict(node.meta)
    for node in module.graph.nodes:
        if node not in copied:
            copied[node] = graph.node_copy(node, copied.__getitem__)
    made = GraphModule(module, graph, type(module).__name__)
    made.meta = dict(module.meta)
    return made


def seed_nodes(module: GraphModule) -> list[Node]:
    """Return the nodes that stand for a call's seed; empty if the graph draws no random numbers."""
    return [node for node in module.graph.nodes if node.target is SEED]


def seeded(run: Callable[..., tuple]) -> Callable[..., tuple]:
    """Wrap `run` so that each call appends a new seed to its inputs."""
    if type(run) is GraphLaunch:
        run.supply_last(SEED)
        return run

    def with_new_seed(*inputs: Tensor | int) -> tuple:
        return run(*inputs, SEED())

    return with_new_seed


def written_constants(module: GraphModule) -> list[Node]:
    """Return the constants that a graph mutates and that only one node refers to."""
    written = (node.args[0] for node in module.graph.nodes if node.target is aten("copy_"))
    found = dict.fromkeys(node for node in written if node.op == "get_attr")
    names = [node.target for node in module.graph.nodes if node.op == "get_attr"]
    return [node for node in found if names.count(node.target) == 1]


def given_constants(run: Callable[..., tuple], constants: Sequence[Tensor]) -> Callable[..., tuple]:
    """Wrap `run` so that each call appends these tensors to its inputs."""

    def with_constants(*inputs: Tensor | int) -> tuple:
        return run(*inputs, *constants)

    return with_constants
