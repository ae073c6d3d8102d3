"""Small tools that passes share: names of targets, and topological order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.targets import qualified_name
from rushlight.nn.modules.module import Module

__all__ = ["get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort"]


def get_acc_ops_name(k: object) -> str:
    """Return the name of a target: `acc_ops.x` for functions of a module of that name, else its dotted name."""
    if isinstance(k, str):
        return k
    module = getattr(k, "__module__", None) or ""
    return f"acc_ops.{k.__name__}" if "acc_ops" in module else qualified_name(k)


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """Return the name of a call's target: the function's, the type of the module's, or the method's."""
    if node.op not in ("call_function", "call_method", "call_module"):
        raise AssertionError(f"Expect op types of call_function, call_module, or call_method, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        kind = getattr(module, "_base_class_origin", type(module))
        return get_acc_ops_name(kind)
    return get_acc_ops_name(node.target) if node.op == "call_function" else node.target


def is_node_output_tensor(node: Node) -> bool:
    """Return whether `meta["type"]` says that the node's value is a tensor."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Sort the nodes of `gm` topologically, otherwise in their old order. RuntimeError if there is no such order."""
    nodes = list(gm.graph.nodes)
    position = {node: index for index, node in enumerate(nodes)}
    ordered = inputs_first(nodes, position.__getitem__)
    if len(ordered) < len(nodes):
        raise RuntimeError(f"Input graph has cycles, unable to add {sorted(set(nodes) - set(ordered), key=position.get)}")
    for one, other in zip(ordered, ordered[1:], strict=False):
        one.append(other)
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Sort the nodes of `gm` topologically. RuntimeError if the graph has a cycle."""
    return stable_topological_sort(gm)


def inputs_first(nodes: Sequence[Node], rank: Callable[[Node], int]) -> list[Node]:
    """Sort nodes topologically by those of their inputs that are among them; nodes in cycles are left out.

    Of several nodes whose inputs are ready, the one of lowest `rank` comes first. `rank` is called at that moment; ranks
    differ.
    """
    waiting = {node: 0 for node in nodes}
    for node in nodes:
        waiting[node] = sum(used in waiting for used in node.all_input_nodes)
    ready = [(rank(node), node) for node in nodes if not waiting[node]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        node = heapq.heappop(ready)[-1]
        ordered.append(node)
        for user in node.users:
            if user in waiting:
                waiting[user] -= 1
                if not waiting[user]:
                    heapq.heappush(ready, (rank(user), user))
    return ordered
