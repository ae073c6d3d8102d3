"""GuardDifferentiableGraphs: guard differentiable groups by which tensors need gradients.

Requires: SSA; `prim::DifferentiableGraph` nodes whose tensor inputs have profiled types. Guarantees: a group without inputs
that needed gradients is inlined again; every other group is guarded by a `prim::RequiresGradCheck`, with a
`prim::FallbackGraph` in the other branch.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.create_autodiff_subgraphs import DIFFERENTIABLE
from rushlight.jit.passes.grouping import inline_group
from rushlight.jit.passes.guarding import guard_node
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TensorType

_LOG = PassLog(__file__)


@graph_pass("GuardDifferentiableGraphs")
def guard_differentiable_graphs(graph: Graph) -> None:
    """Guard every group."""
    for node in graph.find_all_nodes(DIFFERENTIABLE):
        expected = node["Subgraph"].inputs
        tensors = [index for index, value in enumerate(expected) if isinstance(value.type, TensorType)]
        needs = [expected[index].type.requires_grad for index in tensors]
        if True in needs and None not in needs:
            _guard(node, tensors, needs)
        elif _LOG.permits("{} has no gradients and is inlined", node):
            inline_group(node)


def _guard(node: Node, tensors: list[int], needs: list[bool]) -> None:
    if _LOG.permits("{} is guarded", node):
        guard_node(node, "prim::RequiresGradCheck", tensors, [TensorType(requires_grad=each) for each in needs], passed_on=True)
