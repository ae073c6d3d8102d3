"""CreateAutodiffSubgraphs: group differentiable operators into `prim::DifferentiableGraph` nodes.

Requires: SSA. Guarantees: groups are maximal, and have at least `threshold` operators; nothing writes to a group's inputs or
results.
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
    """Create groups of at least `threshold` operators; returns the new nodes."""
    aliases = AliasDb(graph)

    def may_join(node: Node) -> bool:
        return node.kind != "prim::Constant" and is_differentiable(node) and not aliases.node_has_writers(node)

    made = group_nodes(graph.block, DIFFERENTIABLE, may_join, threshold)
    for node in made:
        _LOG.debug("made {}", node)
    return made
