"""SizeArithmetic: convert a trace's tensor arithmetic on sizes to int arithmetic.

A trace records arithmetic on sizes as operators on 0-dim tensors, and converts their results to numbers:

    %2 : Tensor = prim::NumToTensor(%size)                   %5 : int = prim::Constant[value=2]()
    %3 : Tensor = aten::floor_divide(%2, %two)       ->      %6 : int = aten::floordiv(%size, %5)
    %4 : int = aten::Int(%3)

Requires: SSA. Guarantees: an int computed from such tensors only by `add`, `sub`, `mul`, `floor_divide` and `remainder` is
computed by the same operators on ints; the tensors stay for other users.
"""

from __future__ import annotations

from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.helpers import constant_before, insert_before
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import INT

_LOG = PassLog(__file__)
_ON_INTS = {
    "aten::add": "aten::add", "aten::sub": "aten::sub", "aten::mul": "aten::mul", "aten::floor_divide": "aten::floordiv",
    "aten::remainder": "aten::remainder",
}  # fmt: skip
_TO_INTS = ("aten::Int", "aten::IntImplicit", "aten::item", "aten::ScalarImplicit")


@graph_pass("SizeArithmetic")
def size_arithmetic(graph: Graph) -> None:
    """Convert arithmetic on sizes to ints."""
    _rewrite(graph.block, {})


def _rewrite(block: Block, known: dict[Value, Value]) -> None:
    """Rewrite the size arithmetic in a block. `known` maps 0-dim tensors to the ints that they hold."""
    for node in list(block.nodes):
        if node.kind == "prim::NumToTensor" and node.input().type == INT:
            known[node.output] = node.input()
        elif node.kind in _ON_INTS:
            _compute_on_ints(node, known)
        elif node.kind in _TO_INTS and node.input() in known and node.output.type == INT:
            if _LOG.permits("{} is the number that its tensor was made of", node):
                node.output.replace_all_uses_with(known[node.input()])
        for inner in node.blocks:
            _rewrite(inner, dict(known))


def _compute_on_ints(node: Node, known: dict[Value, Value]) -> None:
    """Compute and record the int result of an operator on two known ints."""
    scales = node.kind in ("aten::add", "aten::sub")
    if node.input_count != 2 + scales or (scales and node.input(2).constant() != 1):
        return
    if not any(value in known for value in node.inputs[:2]):
        return
    operands = [_int_of(node, value, known) for value in node.inputs[:2]]
    if None not in operands and _LOG.permits("{} is calculated of ints", node):
        known[node.output] = insert_before(node, _ON_INTS[node.kind], operands, INT)


def _int_of(node: Node, value: Value, known: dict[Value, Value]) -> Value | None:
    """Return the int of an operand, if it is known."""
    if value in known:
        return known[value]
    constant = value.constant()
    if type(constant) is int:
        return value
    if isinstance(constant, Tensor) and constant.dtype is int64 and not constant.dim():
        return constant_before(node, constant.item())
    return None
