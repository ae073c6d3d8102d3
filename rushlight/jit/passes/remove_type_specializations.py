"""RemoveTensorTypeSpecializations: drop observed types that nothing checks.

Requires: groups that rely on types are guarded. Guarantees: outside of groups, only the results of checks, and of guarded
nodes, have specialized tensor types.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.relations import unshaped

_CHECKED = frozenset(("prim::TypeCheck", "prim::RequiresGradCheck", "prim::FusionGroup", "prim::TensorExprGroup", "prim::Guard",
                      "prim::BailOut", "prim::AutogradZero"))  # fmt: skip


@graph_pass("RemoveTensorTypeSpecializations")
def remove_type_specializations(graph: Graph) -> None:
    """Drop unchecked types."""
    _remove_in_block(graph.block)


def _remove_in_block(block: Block) -> None:
    for value in block.inputs:
        value.type = unshaped(value.type)
    for node in block.nodes:
        if node.kind not in _CHECKED:
            for value in node.outputs:
                value.type = unshaped(value.type)
        for inner in node.blocks:
            _remove_in_block(inner)
