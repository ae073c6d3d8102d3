"""FuseGraph: runs of operators on elements become `prim::FusionGroup` nodes, which a compiler can make one loop of.

Requires: SSA. Guarantees: no two operators of the table that could be in one group are apart; what a group reads or gives is
written to by nothing. `FuseTensorExprs` makes `prim::TensorExprGroup` nodes of the same.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.grouping import group_nodes
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import ListType, TensorType

_LOG = PassLog(__file__)
FUSIBLE = frozenset(
    f"aten::{name}" for name in
    ("add", "sub", "mul", "div", "neg", "abs", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal",
     "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "sigmoid", "relu", "relu6", "leaky_relu", "gelu",
     "silu", "hardtanh", "hardsigmoid", "hardswish", "clamp", "floor", "ceil", "round", "trunc", "frac", "erf", "erfc",
     "lgamma", "pow", "fmod", "remainder", "min", "max", "minimum", "maximum", "eq", "ne", "lt", "le", "gt", "ge", "where",
     "lerp", "addcmul", "addcdiv", "atan2", "rsub", "type_as", "threshold", "softplus", "elu", "logical_not", "bitwise_and",
     "bitwise_or", "bitwise_xor", "bitwise_not", "isnan", "sign")
)  # fmt: skip
"""Operators whose result at a place depends on their inputs at that place alone."""


@graph_pass("FuseGraph", "_jit_pass_fuse")
def fuse_graph(graph: Graph, profiled: bool = False, fewest: int = 2) -> list[Node]:
    """Make fusion groups of at least `fewest` operators; the new nodes. `profiled`: of operators on tensors whose types are
    known, and need no gradients."""
    return _fuse(graph, "prim::FusionGroup", profiled, fewest)


@graph_pass("FuseTensorExprs", "_jit_pass_fuse_tensorexprs")
def fuse_tensor_exprs(graph: Graph, profiled: bool = False, fewest: int = 2) -> list[Node]:
    """Make tensor-expression groups; the new nodes. The arguments are as for `fuse_graph`."""
    return _fuse(graph, "prim::TensorExprGroup", profiled, fewest)


def _fuse(graph: Graph, kind: str, profiled: bool, fewest: int) -> list[Node]:
    aliases = AliasDb(graph)

    def may_join(node: Node) -> bool:
        return is_fusible(node) and (not profiled or _is_known(node)) and not aliases.node_has_writers(node)

    made = group_nodes(graph.block, kind, may_join, fewest)
    for node in made:
        _LOG.debug("made {}", node)
    return made


def _is_known(node: Node) -> bool:
    """Whether it is known of all tensors of a node what they are, on the CPU, and that they need no gradients."""
    kinds = [value.type for value in (*node.inputs, *node.outputs) if isinstance(value.type, TensorType)]
    return all(
        kind.dtype is not None and kind.sizes is not None and kind.requires_grad is False and kind.device == "cpu"
        for kind in kinds
    )


def is_fusible(node: Node) -> bool:
    """Whether a node works element by element: its result is a tensor, an input is, too, and none is a list. `max` and `min` do
    so only between two tensors."""
    if node.kind not in FUSIBLE or len(node.outputs) != 1 or not isinstance(node.output.type, TensorType):
        return False
    tensors = [isinstance(value.type, TensorType) for value in node.inputs]
    if node.kind in ("aten::min", "aten::max"):
        return tensors == [True, True]
    return any(tensors) and not any(isinstance(value.type, ListType) for value in node.inputs)
