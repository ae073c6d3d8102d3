"""PeepholeAliasSensitive: rewrites that return a tensor itself instead of a copy.

Requires: SSA, and types with dtypes where they are known. Guarantees: no `x + 0`, `x - 0`, `x * 1` or `x / 1` of a number and a
tensor of known dtype is left, where the result has the dtype and the sizes of `x` and a reader cannot tell it from `x`.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.helpers import nodes_inside_out
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TensorType

_LOG = PassLog(__file__)
_NEUTRAL = {"aten::add": 0, "aten::sub": 0, "aten::mul": 1, "aten::div": 1}


@graph_pass("PeepholeOptimizeAliasSensitive")
def peephole_optimize_alias_sensitive(graph: Graph, shape_peepholes: bool = True) -> bool:
    """Drop arithmetic identities; returns whether there were any."""
    candidates = [node for node in nodes_inside_out(graph.block) if shape_peepholes and _is_neutral(node)]
    if not candidates:
        return False
    aliases, changed = AliasDb(graph), False
    for node in candidates:
        if not _may_share(node, aliases) or not _LOG.permits("{} changes nothing and is removed", node):
            continue
        node.output.replace_all_uses_with(node.input())
        changed = True
    return changed


def _is_neutral(node: Node) -> bool:
    if node.kind not in _NEUTRAL or not node.has_uses or node.input_count > 3 or node.input_count < 2:
        return False
    kind, number = node.input().type, node.input(1).constant()
    if not isinstance(kind, TensorType) or kind.dtype is None or type(number) not in (int, float):
        return False
    if node.kind in ("aten::add", "aten::sub") and node.input_count == 3 and type(node.input(2).constant()) is not int:
        return False
    if node.kind == "aten::div" and node.input_count == 3:
        return False
    return number == _NEUTRAL[node.kind] and _keeps_dtype(node, kind, number)


def _keeps_dtype(node: Node, kind: TensorType, number: float) -> bool:
    dtype = kind.dtype
    if dtype.is_floating_point or dtype.is_complex:
        return True
    return dtype.name != "bool" and type(number) is int and node.kind != "aten::div"


def _may_share(node: Node, aliases: AliasDb) -> bool:
    """Return whether the copy is unobservable: neither tensor is written to, and not both are visible from outside."""
    if aliases.has_writers(node.input()) or aliases.has_writers(node.output):
        return False
    outside = [*node.graph.outputs, *node.graph.inputs]
    return not (
        aliases.may_contain_alias([node.output], node.graph.outputs) and aliases.may_contain_alias([node.input()], outside)
    )
