"""Nodes that may resize a tensor which the graph already holds, which invalidates earlier checks."""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.helpers import held_graphs

_IN_PLACE = frozenset(
    f"aten::{name}_" for name in ("resize", "resize_as", "set", "t", "transpose", "swapaxes", "swapdims", "squeeze",
                                  "unsqueeze", "as_strided", "requires_grad", "detach", "swap", "rename")
)  # fmt: skip
_CALLS = frozenset(("prim::CallFunction", "prim::CallMethod", "prim::PythonOp", "^", "prim::fork", "aten::wait"))
"""Nodes that run code outside of the graph."""


def may_reshape(node: Node) -> bool:
    """Return whether a node may change the sizes or requires_grad of its inputs."""
    return node.kind in _IN_PLACE or node.kind in _CALLS


def has_reshaping(graph: Graph) -> bool:
    """Return whether a graph, or one inside it, contains such a node."""
    return any(map(may_reshape, graph.all_nodes())) or any(map(has_reshaping, held_graphs(graph)))
