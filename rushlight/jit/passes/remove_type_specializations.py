"""RemoveTensorTypeSpecializations: types that were observed, and are not checked, go.

Requires: groups that rely on types are guarded. Guarantees: outside the groups only the results of checks, and of what runs
behind them, have types that say more than that they are tensors.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.relations import unshaped

_CHECKED = frozenset(("prim::TypeCheck", "prim::RequiresGradCheck", "prim::FusionGroup", "prim::TensorExprGroup", "prim::Guard",
                      "prim::BailOut", "prim::AutogradZero"))  # fmt: skip


@graph_pass("RemoveTensorTypeSpecializations")
def remove_type_specializations(graph: Graph) -> None:
    """Forget what is not checked."""
    _block(graph.block)


def _block(block: Block) -> None:
    for value in block.inputs:
        value.type = unshaped(value.type)
    for node in block.nodes:
        if node.kind not in _CHECKED:
            for value in node.outputs:
                value.type = unshaped(value.type)
        for inner in node.blocks:
            _block(inner)
