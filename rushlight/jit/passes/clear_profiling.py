"""ClearProfilingInformation: remove the information of an earlier profiling run.

Requires: nothing. Guarantees: no `prim::profile` node is left, and tensor types are plain, also in inner blocks and held
graphs. `_jit_pass_erase_shape_information` keeps the profiling nodes.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph
from rushlight.jit.passes.helpers import held_graphs
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TensorType
from rushlight.jit.types.relations import unshaped

_LOG = PassLog(__file__)
_PROFILES = frozenset(("prim::profile", "prim::profile_ivalue"))


@graph_pass("ClearProfilingInformation")
def clear_profiling_information(graph: Graph) -> None:
    """Remove profiling nodes and profiled types."""
    for node in list(graph.all_nodes()):
        if node.kind in _PROFILES and _LOG.permits("the profiling node {} is removed", node):
            if node.outputs:
                node.output.replace_all_uses_with(node.input())
            node.destroy()
    erase_shape_information(graph)


@graph_pass("EraseShapeInformation", "_jit_pass_erase_shape_information")
def erase_shape_information(graph: Graph) -> None:
    """Drop dtypes, sizes, devices and requires_grad from types."""
    _erase_block(graph.block)
    for inner in held_graphs(graph):
        erase_shape_information(inner)


def _erase_block(block: Block) -> None:
    for value in block.inputs:
        value.type = unshaped(value.type)
    for node in block.nodes:
        for value in node.outputs:
            if not (node.kind == "prim::AutogradZero" and isinstance(value.type, TensorType)):
                value.type = unshaped(value.type)
        for inner in node.blocks:
            _erase_block(inner)
