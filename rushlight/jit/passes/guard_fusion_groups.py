"""GuardFusionGroups: guard fusion groups by their profiled input types, with a fallback for other tensors.

Requires: SSA; groups (`prim::FusionGroup`, `prim::TensorExprGroup`) whose tensor inputs have profiled types. Guarantees: each
group is guarded by a `prim::TypeCheck` of its inputs, with a `prim::FallbackGraph` in the other branch; with `dynamic`, by a
`prim::TensorExprDynamicGuard`, which checks the rank and everything but sizes.

    %3 : Float(2, 3, ...), %4 : bool = prim::TypeCheck[types=[Float(2, 3, ...)]](%x)
    %5 : Tensor = prim::If(%4)
      block0():
        %6 : Float(2, 3, ...) = prim::TensorExprGroup_0(%3)
        -> (%6)
      block1():
        %7 : Tensor = prim::FallbackGraph_1(%x)
        -> (%7)
"""

from __future__ import annotations

from dataclasses import replace

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.guarding import guard_node
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TENSOR, TensorType

_LOG = PassLog(__file__)
GROUPS = ("prim::FusionGroup", "prim::TensorExprGroup")


@graph_pass("GuardFusionGroups")
def guard_fusion_groups(graph: Graph, dynamic: bool = False) -> None:
    """Guard every group."""
    for kind in GROUPS:
        for node in graph.find_all_nodes(kind):
            _guard(node, dynamic)


def _guard(node: Node, dynamic: bool) -> None:
    expected = node["Subgraph"].inputs
    checked = [index for index, value in enumerate(expected) if isinstance(value.type, TensorType) and value.type != TENSOR]
    if not checked or not _LOG.permits("{} is guarded", node):
        return
    types = [expected[index].type for index in checked]
    if dynamic:
        types = [_open_sizes(kind) for kind in types]
        _set_inner_types(node, checked, types)
        guard_node(node, "prim::TensorExprDynamicGuard", checked, types, passed_on=False)
    else:
        guard_node(node, "prim::TypeCheck", checked, types, passed_on=True)


def _open_sizes(kind: TensorType) -> TensorType:
    return replace(kind, sizes=None if kind.sizes is None else (None,) * len(kind.sizes), strides=None)


def _set_inner_types(node: Node, checked: list[int], types: list[TensorType]) -> None:
    """Make sizes open inside the group, too."""
    body: Graph = node["Subgraph"]
    for inner in body.nodes:
        for value in inner.outputs:
            if isinstance(value.type, TensorType) and not value.is_constant:
                value.type = _open_sizes(value.type)
    for index, kind in zip(checked, types, strict=True):
        body.inputs[index].type = kind
    for value in node.outputs:
        value.type = _open_sizes(value.type)
