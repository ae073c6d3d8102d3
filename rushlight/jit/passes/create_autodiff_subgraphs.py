"""CreateAutodiffSubgraphs: runs of operators that can be differentiated become `prim::DifferentiableGraph` nodes.

Requires: SSA. Guarantees: no two operators with formulas that could be in one group are apart, unless there are fewer than
`threshold` of them; what a group reads or gives is written to by nothing.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.differentiate import is_differentiable
from rushlight.jit.passes.grouping import group_nodes
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)
DIFFERENTIABLE = "prim::DifferentiableGraph"


@graph_pass("CreateAutodiffSubgraphs", "_jit_pass_create_autodiff_subgraphs")
def create_autodiff_subgraphs(graph: Graph, threshold: int = 2) -> list[Node]:
    """Make groups of at least `threshold` operators; the new nodes."""
    aliases = AliasDb(graph)

    def may_join(node: Node) -> bool:
        return node.kind != "prim::Constant" and is_differentiable(node) and not aliases.node_has_writers(node)

    made = group_nodes(graph.block, DIFFERENTIABLE, may_join, threshold)
    for node in made:
        _LOG.debug("made {}", node)
    return made
