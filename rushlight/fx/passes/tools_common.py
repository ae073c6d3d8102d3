"""Small tools that passes share: names of targets, and topological order."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.targets import qualified_name
from rushlight.nn.modules.module import Module

__all__ = ["get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort"]


def get_acc_ops_name(k: object) -> str:
    """The name of a target: `acc_ops.x` for functions of a module of that name, else its dotted name."""
    if isinstance(k, str):
        return k
    module = getattr(k, "__module__", None) or ""
    return f"acc_ops.{k.__name__}" if "acc_ops" in module else qualified_name(k)


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """The name of what a call node calls: the function's, the type of the module's, or the method's."""
    if node.op not in ("call_function", "call_method", "call_module"):
        raise AssertionError(f"Expect op types of call_function, call_module, or call_method, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        kind = getattr(module, "_base_class_origin", type(module))
        return get_acc_ops_name(kind)
    return get_acc_ops_name(node.target) if node.op == "call_function" else node.target


def is_node_output_tensor(node: Node) -> bool:
    """Whether `meta["type"]` says that the node's value is a tensor."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Order the nodes of `gm` so that each comes after its inputs, otherwise as they were. RuntimeError where none does."""
    _reorder(gm.graph, _in_order(gm.graph))
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Order the nodes of `gm` so that each comes after its inputs. RuntimeError where the graph has a circle."""
    return stable_topological_sort(gm)


def _in_order(graph: Graph) -> list[Node]:
    """The nodes in the order nearest to the present one in which inputs come first."""
    nodes = list(graph.nodes)
    position = {node: index for index, node in enumerate(nodes)}
    waiting = {node: len(node.all_input_nodes) for node in nodes}
    ready = [position[node] for node in nodes if not waiting[node]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        ordered.append(node)
        for user in node.users:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, position[user])
    if len(ordered) < len(nodes):
        raise RuntimeError(f"Input graph has cycles, unable to add {[node for node in nodes if waiting[node]]}")
    return ordered


def _reorder(graph: Graph, ordered: list[Node]) -> None:
    for one, other in zip(ordered, ordered[1:], strict=False):
        one.append(other)
