"""EliminateRedundantGuards: remove guards that can't fail because earlier ones hold.

Requires: SSA, `prim::Guard` nodes. Guarantees: the guard of a value that a dominating guard has checked is gone, and so is that
of an operator's result whose type follows from guarded inputs. Graphs that may change a tensor's sizes in place, or the grad
mode, are unchanged.
"""

from __future__ import annotations

from dataclasses import replace

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.gradient_formulas import FORMULAS
from rushlight.jit.passes.helpers import full_name
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.passes.reshaping import has_reshaping
from rushlight.jit.passes.shape_analysis import probed_types
from rushlight.jit.types.kinds import TensorType

_LOG = PassLog(__file__)
GUARD = "prim::Guard"


@graph_pass("EliminateRedundantGuards")
def eliminate_redundant_guards(graph: Graph) -> None:
    """Remove redundant guards."""
    if not has_reshaping(graph) and graph.find_node("aten::set_grad_enabled") is None:
        _eliminate_in_block(graph.block, {})


def _eliminate_in_block(block: Block, outer: dict[Value, Value]) -> None:
    """Process the guards of a block. `outer` maps values to the results of guards before the block."""
    guarded = dict(outer)
    for node in block.nodes:
        if node.kind == GUARD:
            _guard(node, guarded)
        for inner in node.blocks:
            _eliminate_in_block(inner, guarded)


def _guard(node: Node, guarded: dict[Value, Value]) -> None:
    value, kind = node.input(), node.output.type
    known = guarded.get(value)
    if known is not None and known.type == kind:
        if _LOG.permits("%{} was checked before", value.debug_name):
            node.output.replace_all_uses_with(known)
            node.destroy()
            return
    elif _infer_type(value) == kind and _LOG.permits("the type of %{} follows from its inputs", value.debug_name):
        value.type = kind
        node.output.replace_all_uses_with(value)
        node.destroy()
        guarded[value] = value
        return
    guarded[value] = node.output


def _infer_type(value: Value) -> TensorType | None:
    """Return the type of an operator's result, if all tensors that it reads are guarded."""
    node = value.node
    tensors = [each.type for each in node.inputs if isinstance(each.type, TensorType) and not each.is_constant]
    if not node.kind.startswith("aten::") or not tensors or not all(map(_is_known, tensors)) or len(node.outputs) != 1:
        return None
    needs = any(kind.requires_grad for kind in tensors)
    found = None if needs and full_name(node) not in FORMULAS else probed_types(node)
    if found is None or found[0] is None:
        return None
    return replace(found[0], requires_grad=needs, device=tensors[0].device)


def _is_known(kind: TensorType) -> bool:
    complete = kind.dtype is not None and kind.sizes is not None and kind.strides is not None
    return complete and None not in kind.sizes and None not in kind.strides and kind.requires_grad is not None
