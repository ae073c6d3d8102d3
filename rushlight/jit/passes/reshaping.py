"""What may change the sizes of a tensor that a graph already holds, so that nothing found out before holds after it."""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.helpers import held_graphs

_IN_PLACE = frozenset(
    f"aten::{name}_" for name in ("resize", "resize_as", "set", "t", "transpose", "swapaxes", "swapdims", "squeeze",
                                  "unsqueeze", "as_strided", "requires_grad", "detach", "swap", "rename")
)  # fmt: skip
_CALLS = frozenset(("prim::CallFunction", "prim::CallMethod", "prim::PythonOp", "^", "prim::fork", "aten::wait"))
"""What runs code that the graph does not show."""


def may_reshape(node: Node) -> bool:
    """Whether a node may change the sizes, or whether gradients are required, of what it is given."""
    return node.kind in _IN_PLACE or node.kind in _CALLS


def has_reshaping(graph: Graph) -> bool:
    """Whether any node of a graph, or of a graph in it, may."""
    return any(map(may_reshape, graph.all_nodes())) or any(map(has_reshaping, held_graphs(graph)))
