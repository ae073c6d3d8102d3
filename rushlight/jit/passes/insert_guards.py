"""InsertGuards: turn profiled tensor types into guards.

Requires: an instrumented graph that has run. Guarantees: no `prim::profile` node is left: each that saw tensors becomes a
`prim::Guard`, whose result has the profiled type:

    %4 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = prim::Guard(%x)

Guards cannot run; `InsertBailOuts` adds the code for their failure.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TENSOR

_LOG = PassLog(__file__)


@graph_pass("InsertGuards")
def insert_guards(graph: Graph) -> None:
    """Turn profiling nodes into guards."""
    for node in graph.find_all_nodes("prim::profile"):
        if node.inputs:
            _replace(node)
        node.destroy()


def _replace(node: Node) -> None:
    seen, value = node["profiled_type"], node.input()
    if seen != TENSOR and not node["seen_none"] and _LOG.permits("%{} is guarded as {}", value.debug_name, seen.ir_text):
        guard = node.graph.create("prim::Guard", [value]).insert_before(node)
        guard.source_range = node.source_range
        value = guard.output.set_type(seen)
    node.output.replace_all_uses_with(value)
