"""Pickle a graph as flat records, because pickling a linked list would recurse once per node.

In: a graph. Out: a list of records (op, name, target, args, kwargs, type, meta) in which nodes are numbers.
Of meta only plain values, such as the stack trace, are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.fx.immutable_collections import map_aggregate
from rushlight.fx.node import map_arg

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph

_KEPT_META = (str, int, float, bool, type(None))


class NodeNumber(int):
    """The number of a node in the graph's order; it replaces the node in a record."""


def pack_nodes(graph: Graph) -> list[tuple]:
    """Return the nodes of `graph` as picklable records."""
    numbers = {node: NodeNumber(index) for index, node in enumerate(graph.nodes)}
    return [
        (
            node.op,
            node.name,
            node.target,
            map_arg(node.args, numbers.__getitem__),
            map_arg(node.kwargs, numbers.__getitem__),
            node.type,
            {key: value for key, value in node.meta.items() if isinstance(value, _KEPT_META)},
        )
        for node in graph.nodes
    ]


def unpack_nodes(graph: Graph, records: list[tuple]) -> None:
    """Add the nodes of `pack_nodes` to an empty graph."""
    made: list = []

    def restore(leaf: Any) -> Any:
        return made[leaf] if isinstance(leaf, NodeNumber) else leaf

    for op, name, target, args, kwargs, type_expr, meta in records:
        args, kwargs = map_aggregate(args, restore), map_aggregate(kwargs, restore)
        node = graph.create_node(op, target, args, kwargs, name, type_expr)
        node.meta.update(meta)
        made.append(node)
