"""RemoveInplaceOps: in-place arithmetic becomes the operators that give a new tensor.

Requires: SSA, and that nothing reads a written tensor through a view or another name: what reads the result of the in-place
operator sees the change, what reads the tensor itself afterwards does, too. Guarantees: none of the in-place operators that
have another form is left.
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
