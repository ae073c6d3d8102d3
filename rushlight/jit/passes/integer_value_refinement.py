"""RefineIntegerValues: in a branch that implies an int's value, replace the int by the constant.

Requires: SSA. Guarantees: in the branches of an if on `x == n`, `x != n` (the other branch), or a conjunction or, for the other
branch, disjunction of such, no read of the int `x` is left where the comparison holds.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import INT

_LOG = PassLog(__file__)
_JOINS = {"aten::__and__": True, "aten::__or__": False}


@graph_pass("RefineIntegerValues", "_jit_pass_refine_integer_values", "_jit_pass_integer_value_refinement")
def refine_integer_values(graph: Graph) -> bool:
    """Replace ints by their known values; returns whether there were any."""
    changed = False
    for node in graph.find_all_nodes("prim::If"):
        for block, holds in zip(node.blocks, (True, False), strict=True):
            for value, number in _known_ints(node.input(), holds):
                changed |= _replace(block, value, number)
    return changed


def _known_ints(condition: Value, holds: bool) -> list[tuple[Value, Value]]:
    """Return the ints, with the constants that they equal, if a condition holds or does not."""
    node = condition.node
    if node.kind == "aten::__not__":
        return _known_ints(node.input(), not holds)
    if _JOINS.get(node.kind) is holds:
        return [pair for value in node.inputs for pair in _known_ints(value, holds)]
    if node.kind == ("aten::eq" if holds else "aten::ne") and node.input_count == 2:
        first, second = node.inputs
        if first.type == second.type == INT and first.is_constant != second.is_constant:
            return [(second, first) if first.is_constant else (first, second)]
    return []


def _replace(block: Block, value: Value, number: Value) -> bool:
    uses = [use for use in value.uses if _is_inside(use.user, block)]
    if not uses or not _LOG.permits("%{} is {} in a branch", value.debug_name, number.constant()):
        return False
    for use in uses:
        use.user.replace_input(use.offset, number)
    return True


def _is_inside(node: Node, block: Block) -> bool:
    around: Block | None = node.block
    while around is not None:
        if around is block:
            return True
        around = None if around.owner is None else around.owner.block
    return False
