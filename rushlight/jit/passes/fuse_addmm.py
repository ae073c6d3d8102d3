"""FuseAddMM: fuse a product and a sum into one `aten::addmm`.

Requires: SSA, types with sizes, as profiling or shape analysis finds them. Guarantees: no sum with factor 1 of a product of
matrices, read by nothing else, and a tensor that is known to fit `addmm` is left.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.helpers import constant_before, insert_before, replace_with
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TensorType

_LOG = PassLog(__file__)


@graph_pass("FuseAddMM", "_jit_pass_fuse_addmm")
def fuse_addmm(graph: Graph) -> bool:
    """Fuse where possible; returns whether there was anything."""
    aliases, changed = AliasDb(graph), False
    for node in list(graph.all_nodes()):
        if node.kind != "aten::add" or node.input_count != 3 or node.input(2).constant() != 1:
            continue
        for product, bias in (node.inputs[:2], node.inputs[1::-1]):
            if _fits(product, bias, node) and not _is_written(product.node, aliases) and _LOG.permits("{} becomes addmm", node):
                one = constant_before(node, 1)
                made = insert_before(node, "aten::addmm", [bias, *product.node.inputs, one, one], node.output.type)
                replace_with(node, made)
                product.node.destroy()
                changed = True
                break
    return changed


def _is_written(product: Node, aliases: AliasDb) -> bool:
    """Return whether moving the product would be observable, by a write or because its result must be a separate tensor."""
    return aliases.node_has_writers(product)


def _fits(product: Value, bias: Value, node: Node) -> bool:
    """Return whether this is a product used only here, and the other operand broadcasts to its size, in its dtype."""
    maker = product.node
    if maker.kind != "aten::mm" or len(product.uses) != 1 or maker.block is not node.block:
        return False
    kinds = bias.type, *(value.type for value in maker.inputs)
    if not all(isinstance(kind, TensorType) and kind.sizes is not None and kind.dtype is not None for kind in kinds):
        return False
    if len({kind.dtype for kind in kinds}) != 1 or len(kinds[1].sizes) != 2 or len(kinds[2].sizes) != 2:
        return False
    rows, columns = kinds[1].sizes[0], kinds[2].sizes[1]
    sizes = (1,) * (2 - len(kinds[0].sizes)) + tuple(kinds[0].sizes)
    return len(sizes) == 2 and sizes[0] in (1, rows) and sizes[1] in (1, columns) and None not in (*sizes, rows, columns)
