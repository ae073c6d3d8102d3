"""Nodes of a graph that become its last inputs: what each call is to be given besides the program's own.

In: a graph, and nodes of it that take no arguments. Out: the same graph over more inputs. Two kinds are here: a seed for
random numbers, which each call draws from the default generator, and constants that the graph writes to, since what a
constant holds is looked at once. Stage: inductor, before the graph is cut.
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
    """A copy of the graph whose last inputs are in the place of `nodes`."""
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
    """The nodes that stand for the seed of a call; none in a graph that draws no random numbers."""
    return [node for node in module.graph.nodes if node.target is SEED]


def seeded(run: Callable[..., tuple]) -> Callable[..., tuple]:
    """`run`, called with a new seed after its other inputs."""
    if type(run) is GraphLaunch:
        run.supply_last(SEED)
        return run

    def with_new_seed(*inputs: Tensor | int) -> tuple:
        return run(*inputs, SEED())

    return with_new_seed


def written_constants(module: GraphModule) -> list[Node]:
    """The constants that a graph writes to, each of which is one node."""
    written = (node.args[0] for node in module.graph.nodes if node.target is aten("copy_"))
    found = dict.fromkeys(node for node in written if node.op == "get_attr")
    names = [node.target for node in module.graph.nodes if node.op == "get_attr"]
    return [node for node in found if names.count(node.target) == 1]


def given_constants(run: Callable[..., tuple], constants: Sequence[Tensor]) -> Callable[..., tuple]:
    """`run`, called with these tensors after its other inputs."""

    def with_constants(*inputs: Tensor | int) -> tuple:
        return run(*inputs, *constants)

    return with_constants
