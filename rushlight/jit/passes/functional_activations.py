"""Convert activations between in-place and functional form: `relu_` to `relu` and back.

Requires: SSA. `InplaceToFunctionalActivation` guarantees that no in-place activation of the table is left that writes to a
tensor made just before. `FunctionalToInplaceActivation` makes activations work in place whose input has no other use and is
made here, so that a frozen graph takes less memory.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.helpers import SHAPE_READERS
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.passes.remove_mutation import remove_tensor_mutation
from rushlight.jit.types.kinds import TensorType

_LOG = PassLog(__file__)
ACTIVATIONS = frozenset(("aten::hardsigmoid", "aten::hardtanh", "aten::hardswish", "aten::relu", "aten::relu6", "aten::celu",
                         "aten::elu", "aten::leaky_relu", "aten::sigmoid", "aten::tanh", "aten::silu",
                         "aten::selu", "aten::dropout"))  # fmt: skip
_PROMOTING = frozenset(("aten::sigmoid", "aten::tanh"))
"""Operators that turn ints into floats, so they cannot run in place on ints."""


@graph_pass("InplaceToFunctionalActivation", "_jit_pass_inplace_to_functional_activation")
def inplace_to_functional_activation(graph: Graph) -> bool:
    """Make in-place activations functional."""
    return remove_tensor_mutation(graph, lambda node: node.kind.removesuffix("_") in ACTIVATIONS)


@graph_pass("FunctionalToInplaceActivation", "_jit_pass_functional_to_inplace_activation")
def functional_to_inplace_activation(graph: Graph) -> bool:
    """Make activations write to their inputs where nothing can observe it."""
    aliases, changed = AliasDb(graph), False
    for node in list(graph.all_nodes()):
        if node.kind in ACTIVATIONS and _may_write(node, aliases) and _LOG.permits("{} works in place", node):
            made = node.graph.create(f"{node.kind}_", node.inputs).insert_before(node)
            made.source_range = node.source_range
            node.output.replace_all_uses_with(made.output.copy_metadata(node.output))
            node.destroy()
            changed = True
    return changed


def _may_write(node: Node, aliases: AliasDb) -> bool:
    value = node.input()
    maker = value.node
    read_elsewhere = any(use.user is not node and use.user.kind not in SHAPE_READERS for use in value.uses)
    if read_elsewhere or maker.block is not node.block or maker.kind in ("prim::Param", "prim::Constant"):
        return False
    if aliases.escapes(value) or len(aliases.aliases_of(value)) != 1:
        return False
    return node.kind not in _PROMOTING or _same_dtype(node)


def _same_dtype(node: Node) -> bool:
    kind = node.input().type
    return isinstance(kind, TensorType) and kind.dtype is not None and kind.dtype.is_floating_point
