"""RemoveDropout: remove inactive dropout of a module in evaluation mode.

Requires: SSA. Guarantees: no `aten::dropout` or `aten::feature_dropout`, in place or not, is left. RuntimeError where one's
`train` is not known to be false: dropping it would change results.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.helpers import replace_with
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)
_KINDS = frozenset(("aten::dropout", "aten::dropout_", "aten::feature_dropout", "aten::feature_dropout_"))


@graph_pass("RemoveDropout", "_jit_pass_remove_dropout")
def remove_dropout(graph: Graph) -> None:
    """Replace dropout by its input."""
    for node in list(graph.all_nodes()):
        if node.kind not in _KINDS:
            continue
        if node.input(2).constant() is not False:
            raise RuntimeError("Dropout is in training: call eval() on the module, or freeze it, before dropout is removed")
        if _LOG.permits("{} does nothing and is removed", node):
            replace_with(node, node.input())
