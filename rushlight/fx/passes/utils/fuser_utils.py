"""Fuse groups of nodes: each becomes a submodule, and one call of it replaces its nodes."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import inputs_first, stable_topological_sort
from rushlight.fx.passes.utils.common import lift_subgraph_as_module

__all__ = ["erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition"]


def topo_sort(nodes: Sequence[Node]) -> list[Node]:
    """Sort nodes topologically by those of their inputs that are among them; AssertionError if that is not possible."""
    turns = itertools.count()
    ordered = inputs_first(nodes, lambda node: next(turns))
    if len(ordered) != len(set(nodes)):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return ordered


def validate_partition(partition: Sequence[Node]) -> bool:
    """Return whether the nodes can become one: no path leaves them and comes back through other nodes."""
    inside = set(partition)
    seen: set[Node] = set()
    waiting = [user for node in inside for user in node.users if user not in inside]
    while waiting:
        node = waiting.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            waiting += node.users
    return True


def fuse_as_graphmodule(
    gm: GraphModule, nodes: Sequence[Node], module_name: str,
    partition_lookup_table: Mapping[Node, int | None] | None = None, *, always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:  # fmt: skip
    """Make a GraphModule of these nodes of `gm`; return it with its inputs and outputs as nodes of `gm`, which is not changed.

    `partition_lookup_table` would hold the nodes' places in the partition; it is not used.
    """
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {type(gm).__name__}")
        if node not in node.graph.nodes:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes)
    graph, made = Graph(), {}
    for used in (each for node in nodes for each in node.all_input_nodes):
        if used not in inside and used not in made:
            made[used] = graph.create_node("placeholder", used.name, (), {}, used.name, used.type)
            made[used].meta = dict(used.meta)
    inputs = tuple(made)
    for node in nodes:
        made[node] = graph.node_copy(node, made.__getitem__)
    outputs = tuple(node for node in nodes if any(user not in inside for user in node.users))
    results = tuple(made[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    fused, _ = lift_subgraph_as_module(gm, graph, comp_name="", class_name=module_name)
    return fused, inputs, outputs


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...], orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:  # fmt: skip
    """Call `sub_gm` in `gm` on `orig_inputs`, and replace `orig_outputs` by its results."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    last = insertion_point if insertion_point is not None else _last(gm, orig_outputs or orig_inputs)
    with gm.graph.inserting_after(last):
        call = gm.graph.call_module(name, args=orig_inputs)
        returns_tuple = isinstance(sub_gm.graph.output_node().args[0], tuple)
        if len(orig_outputs) == 1 and not returns_tuple:
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
            return gm
    with gm.graph.inserting_after(call):
        for index in reversed(range(len(orig_outputs))):
            old = orig_outputs[index]
            taken = gm.graph.call_function(operator.getitem, (call, index))
            old.replace_all_uses_with(taken, propagate_meta=True)
    call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def _last(gm: GraphModule, nodes: Iterable[Node]) -> Node:
    wanted = set(nodes)
    return [node for node in gm.graph.nodes if node in wanted][-1]


def erase_nodes(gm: GraphModule, nodes: Sequence[Node]) -> None:
    """Erase nodes that only each other use, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list[dict[Node, int | None]], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Make each group of nodes a submodule `fused_0`, `fused_1`, ... of `gm`, which is changed in place."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        fused, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, fused, inputs, outputs, _last(gm, nodes))
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
