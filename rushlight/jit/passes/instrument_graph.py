"""InstrumentGraph: insert nodes that profile tensors.

Requires: SSA, calls inlined as far as they are to be profiled. Guarantees: every tensor that a node reads, or the graph
returns, goes through a `prim::profile` node of its own, which records observed types in `profiled_type` and whether None
occurred (carried values are profiled in the loop's body). The last node, `prim::profile()` without inputs, counts completed
runs.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TENSOR, TensorType


@graph_pass("InstrumentGraph")
def instrument_graph(graph: Graph) -> None:
    """Insert the profiling nodes."""
    _instrument(graph.block)
    graph.create("prim::profile", (), 0).insert_before(graph.block.result)


def _instrument(block: Block) -> None:
    for node in [*block.nodes, block.result]:
        if node.kind in ("prim::Constant", "prim::profile"):
            continue
        for inner in node.blocks:
            _instrument(inner)
        for index, value in enumerate(() if node.kind == "prim::Loop" else node.inputs):
            if isinstance(value.type, TensorType) and not value.is_constant:
                node.replace_input(index, _insert_profile(node, value))


def _insert_profile(before: Node, value: Value) -> Value:
    graph = before.graph
    node = graph.create("prim::profile", [value]).insert_before(before)
    node.set("profiled_type", TENSOR).set("seen_none", 0)
    node.output.set_type(value.type)
    return node.output
