"""Graphs with data-dependent sizes: operators that need values run between compiled parts.

In: a captured graph with nodes such as `nonzero` or `item()`, whose sizes and numbers are known only when it runs. Out: a
module of parts. Parts that need values, and computations on numbers, are eager; each other part is compiled when it first runs,
for the sizes it meets, and opens sizes that change.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.symbolic import SymInt
from rushlight.dynamo.unknown_values import check_relation
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.split_module import split_module
from rushlight.nn.modules.module import Module


def needs_values(module: GraphModule) -> bool:
    """Return whether a captured graph has data-dependent nodes."""
    return any("of_values" in node.meta for node in module.graph.nodes)


def in_parts(module: GraphModule, compiled: Callable[[GraphModule], Module]) -> Callable:
    """Split the graph into parts that run in sequence; `compiled` compiles those that are not eager."""
    parts, eager = _assign_parts(module)
    split = split_module(module, module, lambda node: parts.get(node, 0), keep_original_order=True)
    for name, child in list(split.named_children()):
        if int(name.rpartition("_")[2]) not in eager:
            setattr(split, name, compiled(child))
    return split.forward


def _assign_parts(module: GraphModule) -> tuple[dict[Node, int], set[int]]:
    """Return node -> part, and the numbers of eager parts. Parts are in the graph's order."""
    parts: dict[Node, int] = {}
    eager = {0}
    latest, current = 0, 0
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        if _is_number(node) and all(parts.get(used, 0) <= latest for used in node.all_input_nodes):
            parts[node] = latest
        elif _is_number(node) or "of_values" in node.meta or node.target is check_relation:
            if current != latest:
                current += 1
                latest = current
                eager.add(current)
            parts[node] = current
        else:
            if current == latest:
                current += 1
            parts[node] = current
    return parts, eager


def _is_number(node: Node) -> bool:
    return type(node.meta.get("val")) in (int, float, bool, SymInt)
