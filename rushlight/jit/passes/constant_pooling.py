"""ConstantPooling: merge equal constants at the beginning of the graph.

Requires: SSA. Guarantees: no two constants in the graph's own blocks are equal and of one type; each precedes its uses.
"""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)


@graph_pass("ConstantPooling", "_jit_pass_constant_pooling")
def constant_pooling(graph: Graph) -> None:
    """Pool the constants of a graph."""
    known: dict[tuple, Node] = {}
    last = graph.block.param  # the last constant of those moved to the graph's beginning
    for node in list(graph.all_nodes()):
        if node.kind != "prim::Constant":
            continue
        key = _key(node)
        found = known.get(key) if key is not None else None
        if found is not None:
            if not _LOG.permits("{} is replaced by %{}", node, found.output.debug_name):
                continue
            node.output.replace_all_uses_with(found.output)
            node.destroy()
            continue
        if key is not None:
            known[key] = node
        if node.previous is not last:
            node.move_after(last)
        last = node


def _key(node: Node) -> tuple | None:
    """Return the key that equal constants share; None for one that is equal only to itself."""
    value = node.attributes.get("value")
    kind = node.output.type
    if isinstance(value, Tensor):
        return (kind, "tensor", id(value))
    try:
        return (kind, frozen_constant(value), "static" in node.attributes)
    except TypeError:
        return None


def frozen_constant(value: object) -> object:
    """Return a hashable key of a constant, which equal constants share; tensors are equal only to themselves. TypeError for a
    value that has none."""
    if isinstance(value, list | tuple):
        return (type(value), *map(frozen_constant, value))
    if isinstance(value, dict):
        return ("dict", *((key, frozen_constant(item)) for key, item in value.items()))
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, complex):
        return ("complex", repr(value))
    if isinstance(value, Tensor):
        return ("tensor", id(value))
    hash(value)
    return (type(value), value)
