"""CanonicalizeOps: one canonical form for operations that can be written in several ways.

Requires: SSA. Guarantees: `add`, `sub`, `mul` and `div` have numbers where they had constant tensors without dimensions; an
`aten::chunk` of known count and dimension whose list is only unpacked is a `prim::ConstantChunk`.
"""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.jit.constants import is_number
from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.passes.clear_profiling import erase_shape_information
from rushlight.jit.passes.helpers import constant_before
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TensorType

_LOG = PassLog(__file__)
_ARITHMETIC = frozenset(("aten::add", "aten::sub", "aten::mul", "aten::div"))


@graph_pass("CanonicalizeOps")
def canonicalize_ops(graph: Graph) -> None:
    """Bring nodes into the forms that later passes expect."""
    use_numbers(graph)
    for node in list(graph.all_nodes()):
        if node.kind == "aten::chunk":
            _constant_chunk(node)


def use_numbers(graph: Graph) -> None:
    """Replace constant 0-dim tensors in arithmetic by numbers, which promote in the same way.

    The same applies to numbers that a trace holds as tensors, in every operator that accepts a number. Recorded result types
    are then dropped.
    """
    found = [node for node in graph.all_nodes() if node.input_count > 1 and _has_number(node)]
    for node in found:
        _number_for_tensor(node)
    if found:
        erase_shape_information(graph)


def _has_number(node: Node) -> bool:
    other = node.input(1).constant()
    if not isinstance(other, Tensor) or other.dim() or not isinstance(node.input().type, TensorType):
        return False
    has_mode = node.input_count > 2 + (node.kind in ("aten::add", "aten::sub"))
    return is_number(other) if has_mode else node.kind in _ARITHMETIC or is_number(other)


def _number_for_tensor(node: Node) -> None:
    other = node.input(1).constant()
    if _LOG.permits("{} gets a number for a constant tensor", node):
        before = node.input(1)
        node.replace_input(1, constant_before(node, other.item()))
        if operator_of(node) is None:
            node.replace_input(1, before)


def _constant_chunk(node: Node) -> None:
    chunks, dim = node.input(1).constant(), node.input(2).constant()
    uses = node.output.uses
    if type(chunks) is not int or type(dim) is not int or len(uses) != 1 or uses[0].user.kind != "prim::ListUnpack":
        return
    unpack = uses[0].user
    if len(unpack.outputs) != chunks or not _LOG.permits("{} becomes a chunk of constant size", node):
        return
    made = node.graph.create("prim::ConstantChunk", [node.input()], 0).insert_before(node)
    made.source_range, made.scope = node.source_range, node.scope
    made.set("chunks", chunks).set("dim", dim)
    for value in unpack.outputs:
        value.replace_all_uses_with(made.add_output().copy_metadata(value))
    unpack.destroy()
    node.destroy()
