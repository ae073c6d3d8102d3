"""RemoveInplaceOps: replace in-place arithmetic by functional operators.

Requires: SSA, and that no written tensor is read through an alias. Users of the in-place operator's result, and later users of
the tensor itself, see the change. Guarantees: no in-place operator with a functional form is left.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.functional_forms import functional_kind, insert_functional
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)
_KINDS = frozenset(("aten::add_", "aten::sub_", "aten::mul_", "aten::div_", "aten::zero_", "aten::fill_"))


@graph_pass("RemoveInplaceOps", "_jit_pass_remove_inplace_ops")
def remove_inplace_ops(graph: Graph) -> None:
    """Replace in-place operators."""
    for node in list(graph.all_nodes()):
        kind = functional_kind(node) if node.kind in _KINDS else None
        if kind is None or not _LOG.permits("{} becomes {}", node, kind):
            continue
        written = node.input()
        made = insert_functional(node, kind).output
        node.output.replace_all_uses_with(made)
        written.replace_uses_after(node, made)
        node.destroy()
