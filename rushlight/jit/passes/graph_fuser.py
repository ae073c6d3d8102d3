"""FuseGraph: group elementwise operators into `prim::FusionGroup` nodes, which a compiler can turn into one loop.

Requires: SSA. Guarantees: groups of the table's operators are maximal; nothing writes to a group's inputs or results.
`FuseTensorExprs` does the same with `prim::TensorExprGroup` nodes.
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
    """Create fusion groups of at least `fewest` operators; returns the new nodes. `profiled` restricts them to tensors with
    known types that need no gradients."""
    return _fuse(graph, "prim::FusionGroup", profiled, fewest)


@graph_pass("FuseTensorExprs", "_jit_pass_fuse_tensorexprs")
def fuse_tensor_exprs(graph: Graph, profiled: bool = False, fewest: int = 2) -> list[Node]:
    """Create tensor-expression groups; returns the new nodes. The arguments are as for `fuse_graph`."""
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
    """Return whether all tensors of a node have known types, are on the CPU, and need no gradients."""
    kinds = [value.type for value in (*node.inputs, *node.outputs) if isinstance(value.type, TensorType)]
    return all(
        kind.dtype is not None and kind.sizes is not None and kind.requires_grad is False and kind.device == "cpu"
        for kind in kinds
    )


def is_fusible(node: Node) -> bool:
    """Return whether a node is elementwise: its result is a tensor, so is an input, and none is a list. `max` and `min` qualify
    only between two tensors."""
    if node.kind not in FUSIBLE or len(node.outputs) != 1 or not isinstance(node.output.type, TensorType):
        return False
    tensors = [isinstance(value.type, TensorType) for value in node.inputs]
    if node.kind in ("aten::min", "aten::max"):
        return tensors == [True, True]
    return any(tensors) and not any(isinstance(value.type, ListType) for value in node.inputs)
