"""PeepholeDictIdioms: fold look-ups in constructed dicts that nothing writes to.

Requires: SSA. Guarantees: no `aten::len`, and no `aten::__getitem__` of known key, reads a `prim::DictConstruct` of known keys
that is never written to.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.helpers import constant_before, nodes_inside_out
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)
_KEYS = (str, int, bool, float, complex)


@graph_pass("PeepholeOptimizeDictIdioms")
def peephole_optimize_dict_idioms(graph: Graph) -> bool:
    """Fold look-ups of known keys; returns whether there were any."""
    readers = [
        node
        for node in nodes_inside_out(graph.block)
        if node.kind in ("aten::len", "aten::__getitem__") and node.input().node.kind == "prim::DictConstruct" and node.has_uses
    ]
    if not readers:
        return False
    aliases, changed = AliasDb(graph), False
    for node in readers:
        known = _known_items(node.input())
        if known is None or aliases.has_writers(node.input()):
            continue
        found = constant_before(node, len(known)) if node.kind == "aten::len" else _simplify_item(node, known)
        if found is not None and _LOG.permits("{} is replaced by %{}", node, found.debug_name):
            node.output.replace_all_uses_with(found)
            changed = True
    return changed


def _known_items(value: Value) -> dict[tuple, Value] | None:
    """Return the values by type and value of their keys; None where a key is unknown or ambiguous."""
    found: dict[tuple, Value] = {}
    inputs = value.node.inputs
    for key, item in zip(inputs[::2], inputs[1::2], strict=True):
        if not isinstance(key.constant(), _KEYS):
            return None
        found[type(key.constant()), key.constant()] = item
    return found


def _simplify_item(node: Node, known: dict[tuple, Value]) -> Value | None:
    key = node.input(1).constant()
    return known.get((type(key), key)) if isinstance(key, _KEYS) else None
