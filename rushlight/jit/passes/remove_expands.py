"""RemoveExpands: remove expansions that tracing inserted and that broadcasting makes redundant.

Requires: SSA. Guarantees: no `aten::expand` whose `implicit` is known to be true is left.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.helpers import replace_with
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)


@graph_pass("RemoveExpands", "_jit_pass_remove_expands")
def remove_expands(graph: Graph) -> None:
    """Replace implicit expansions by their inputs."""
    for node in graph.all_nodes():
        is_implicit = node.kind == "aten::expand" and node.input_count == 3 and node.input(2).constant() is True
        if is_implicit and _LOG.permits("the implicit expansion {} is removed", node):
            replace_with(node, node.input())
