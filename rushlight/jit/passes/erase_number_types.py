"""EraseNumberTypes: turn numbers into tensors, for backends without numbers.

Requires: SSA, straight code. Guarantees: no value of the graph is an int, float or bool: constants are tensors without
dimensions, conversions between numbers and tensors are gone. The graph no longer fits the operators' schemas.
"""

from __future__ import annotations

from rushlight.core.dtype import bool_, complex128, float64, int64
from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.common_subexpression_elimination import eliminate_common_subexpression
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import BOOL, COMPLEX, FLOAT, INT, NUMBER, TENSOR, TensorType
from rushlight.ops.construct import tensor

_LOG = PassLog(__file__)
_CONVERSIONS = frozenset(("aten::Bool", "aten::Float", "aten::Int", "aten::FloatImplicit", "aten::IntImplicit",
                          "aten::ScalarImplicit", "prim::NumToTensor", "prim::ImplicitTensorToNum"))  # fmt: skip
_DTYPES = {INT: int64, FLOAT: float64, BOOL: bool_, COMPLEX: complex128}


@graph_pass("EraseNumberTypes", "_jit_pass_erase_number_types")
def erase_number_types(graph: Graph) -> None:
    """Turn all numbers into tensors."""
    for value in graph.inputs:
        _erase_type(value)
    _erase_block(graph.block)
    eliminate_common_subexpression(graph)
    eliminate_dead_code(graph)


def _erase_block(block: Block) -> None:
    for node in block.nodes:
        for value in node.outputs:
            if value.type in _DTYPES or node.kind in _CONVERSIONS:
                _erase_output(node)
                break
        for inner in node.blocks:
            for value in inner.inputs:
                _erase_type(value)
            _erase_block(inner)


def _erase_output(node: Node) -> None:
    if node.kind == "prim::Constant":
        if node["value"] is not None and _LOG.permits("{} becomes a tensor", node):
            made: Tensor = tensor(node["value"], dtype=_DTYPES[node.output.type])
            node.set("value", made)
            node.output.set_type(TensorType(made.dtype, (), (), False, "cpu"))
    elif node.kind in _CONVERSIONS:
        if _LOG.permits("{} is no conversion any more", node):
            node.output.replace_all_uses_with(node.input())
    else:
        for value in node.outputs:
            _erase_type(value)


def _erase_type(value: Value) -> None:
    if value.type in _DTYPES:
        value.type = TensorType(_DTYPES[value.type], (), device="cpu")
    elif value.type == NUMBER:
        value.type = TENSOR
