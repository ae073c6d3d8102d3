"""InlineAutodiffSubgraphs: inline small differentiable groups again.

Requires: SSA. Guarantees: every `prim::DifferentiableGraph` that is left has at least `threshold` non-constant nodes.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.create_autodiff_subgraphs import DIFFERENTIABLE
from rushlight.jit.passes.grouping import inline_group
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)


@graph_pass("InlineAutodiffSubgraphs", "_jit_pass_inline_autodiff_subgraphs")
def inline_autodiff_subgraphs(graph: Graph, threshold: int = 5) -> None:
    """Inline groups of fewer than `threshold` nodes."""
    for node in graph.find_all_nodes(DIFFERENTIABLE):
        body: Graph = node["Subgraph"]
        size = sum(1 for each in body.nodes if each.kind != "prim::Constant")
        if size < threshold and _LOG.permits("a group of {} nodes is inlined", size):
            inline_group(node)
