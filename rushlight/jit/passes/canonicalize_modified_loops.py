"""CanonicalizeModifiedLoops: a loop with a trip count and a condition has only the condition.

Requires: SSA. Guarantees: every loop either runs its trip count (its condition is always true) or runs while its condition is
true (its trip count is the largest int). A loop that had both, such as `for` with `break`, counts its rounds itself.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.helpers import constant_before, insert_before
from rushlight.jit.passes.loop_unrolling import is_for_loop
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import BOOL, INT

_LOG = PassLog(__file__)
MAX_INT = 9223372036854775807


@graph_pass("CanonicalizeModifiedLoops")
def canonicalize_modified_loops(graph: Graph) -> None:
    """Give each loop a single reason to end."""
    for node in graph.find_all_nodes("prim::Loop"):
        trips = node.input().constant()
        is_while = type(trips) is int and trips == MAX_INT
        if not is_while and not is_for_loop(node) and _LOG.permits("{} ends by its condition alone", node):
            _canonicalize(node)


def _canonicalize(node: Node) -> None:
    body, trips = node.blocks[0], node.input()
    zero = constant_before(node, 0)
    begins = insert_before(node, "aten::gt", [trips, zero], BOOL)
    if node.input(1).constant() is not True:
        begins = insert_before(node, "aten::__and__", [begins, node.input(1)], BOOL)
    node.replace_input(1, begins)
    node.replace_input(0, constant_before(node, MAX_INT))
    node.add_input(zero)
    node.add_output(INT)
    counted = body.add_input(None, INT)
    body.inputs[0].replace_all_uses_with(counted)
    following = insert_before(body.result, "aten::add", [counted, constant_before(node, 1)], INT)
    goes_on = insert_before(body.result, "aten::lt", [following, trips], BOOL)
    body.replace_output(0, insert_before(body.result, "aten::__and__", [goes_on, body.outputs[0]], BOOL))
    body.add_output(following)
