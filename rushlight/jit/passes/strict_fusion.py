"""CheckStrictFusion: `with torch.jit.strict_fusion()` means that all its operators are in groups.

Requires: groups are created and guarded. Guarantees: the graph is unchanged; ErrorReport (a RuntimeError) names tensor
operators outside of groups within such a block.
"""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import ListType, TensorType, Type

CLASS = "__torch__.torch.jit.strict_fusion"
_CHECKS = frozenset(("prim::TypeCheck", "prim::RequiresGradCheck", "prim::TensorExprDynamicGuard"))


@graph_pass("CheckStrictFusion")
def check_strict_fusion(graph: Graph) -> None:
    """Check every block of strict fusion."""
    for node in graph.find_all_nodes("prim::Enter"):
        if getattr(node.input().type, "name", None) == CLASS:
            _check(node)


def _check(enter: Node) -> None:
    unfused = []
    node = enter.next
    while node is not enter.block.result and not (node.kind == "prim::Exit" and node.input() is enter.input()):
        unfused += _unfused_operators(node)
        node = node.next
    if unfused:
        shown = "".join(f"\t{operator_of(each).schema}\n" for each in unfused)
        raise ErrorReport(enter.input().node.source_range, f"Found unfused operators: \n{shown}")


def _unfused_operators(node: Node) -> Iterator[Node]:
    """Yield the tensor operators in a node, unless it is a guarded group."""
    if node.kind == "prim::If" and node.input().node.kind in _CHECKS:
        return
    if node.kind.startswith("aten::") and any(_holds_tensors(value.type) for value in node.outputs):
        if operator_of(node) is not None:
            yield node
    for block in node.blocks:
        for each in block.nodes:
            yield from _unfused_operators(each)


def _holds_tensors(kind: Type) -> bool:
    return isinstance(kind, TensorType) or (isinstance(kind, ListType) and _holds_tensors(kind.element))
