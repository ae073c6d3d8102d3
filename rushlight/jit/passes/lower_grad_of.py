"""LowerGradOf: run gradient formulas only if an incoming gradient exists.

Requires: SSA; `prim::GradOf[name](gradients)` holds the formula of one operator in a block. Guarantees: none is left: each is a
`prim::If` on `prim::AutogradAnyNonZero(gradients)`, whose other branch returns `prim::AutogradZero` for every result.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import BOOL, TensorType

_LOG = PassLog(__file__)
ZERO = TensorType(undefined=True)


@graph_pass("LowerGradOf")
def lower_grad_of(graph: Graph) -> None:
    """Turn the formulas into ifs."""
    for node in list(graph.all_nodes()):
        if node.kind == "prim::GradOf" and _LOG.permits("the gradient of {} becomes an if", node.attributes.get("name")):
            _lower(graph, node)


def _lower(graph: Graph, node: Node) -> None:
    with graph.inserting(before=node), graph.source(node.source_range):
        check = graph.insert("prim::AutogradAnyNonZero", node.inputs).output.set_type(BOOL)
        branch = graph.insert("prim::If", [check], 0)
    taken, skipped = branch.add_block(), branch.add_block()
    taken.clone_from(node.blocks[0], lambda value: value)
    with graph.inserting(at_end_of=skipped):
        zero = graph.insert("prim::AutogradZero").output.set_type(ZERO)
    for value in node.outputs:
        skipped.add_output(zero)
        value.replace_all_uses_with(branch.add_output().copy_metadata(value))
    node.destroy()
