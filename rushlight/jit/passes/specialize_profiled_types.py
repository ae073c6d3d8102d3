"""RemoveProfileNodesAndSpecializeTypes: turn profiled types into the values' types.

Requires: an instrumented graph that has run. Guarantees: no `prim::profile` node is left; the type of each tensor is the common
type that its uses observed. These types are observations: code that relies on them must be guarded.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Value
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.passes.shape_analysis import merge_tensor_types
from rushlight.jit.types.kinds import TENSOR, TensorType


@graph_pass("RemoveProfileNodesAndSpecializeTypes")
def specialize_profiled_types(graph: Graph) -> None:
    """Remove the profiling nodes, and set types."""
    seen: dict[Value, TensorType] = {}
    for node in graph.find_all_nodes("prim::profile"):
        if node.inputs:
            _record_type(seen, node.input(), node["profiled_type"], bool(node["seen_none"]))
            node.output.replace_all_uses_with(node.input())
        node.destroy()
    for value, kind in seen.items():
        value.type = kind


def _record_type(seen: dict[Value, TensorType], value: Value, kind: TensorType, was_none: bool) -> None:
    if was_none:
        seen[value] = TENSOR
    elif kind != TENSOR:
        seen[value] = kind if value not in seen else merge_tensor_types(seen[value], kind)
