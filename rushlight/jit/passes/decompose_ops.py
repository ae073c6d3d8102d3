"""DecomposeOps: split `addmm`, so that products can be batched and sums fused.

Requires: SSA. Guarantees: no `aten::addmm` whose factors `alpha` and `beta` are known to be 1 is left: it is an `mm` and an
`add`. Normalisations stay whole, since they have kernels of their own.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.helpers import constant_before, insert_before, replace_with
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)


@graph_pass("DecomposeOps", "_jit_pass_decompose_ops")
def decompose_ops(graph: Graph) -> bool:
    """Decompose; returns whether there was anything."""
    changed = False
    for node in list(graph.all_nodes()):
        is_plain = node.kind == "aten::addmm" and all(value.constant() == 1 for value in node.inputs[3:])
        if not is_plain or not _LOG.permits("{} becomes a product and a sum", node):
            continue
        product = insert_before(node, "aten::mm", node.inputs[1:3])
        total = insert_before(node, "aten::add", [node.input(), product, constant_before(node, 1)], node.output.type)
        replace_with(node, total)
        changed = True
    return changed
