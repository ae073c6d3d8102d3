"""LiftClosures: move forked calls into graphs of their own.

Requires: SSA, with each forked call in the block of a `prim::forkClosure`. Guarantees: every such node is a `prim::fork` with
the graph as its attribute `Subgraph`, and the block's captured values as its inputs.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.passes.registry import graph_pass


@graph_pass("LiftClosures", "_jit_pass_fork")
def lift_closures(graph: Graph) -> None:
    """Lift every forked call; inner ones together with the bodies that contain them."""
    for node in graph.find_all_nodes("prim::forkClosure"):
        if node.block is not None and node.blocks:
            _lift(node)


def _lift(node: Node) -> None:
    body = Graph()
    taken: dict[Value, Value] = {}

    def inside(value: Value) -> Value:
        if value not in taken:
            if value.is_constant:
                made = body.block.prepend(body.clone_node(value.node, inside)).output
            else:
                made = body.add_input(None, value.type).copy_metadata(value)
            taken[value] = made
        return taken[value]

    closure = node.blocks[0]
    copies: dict[Value, Value] = {}
    for each in closure.nodes:
        copy = body.block.append(body.clone_node(each, lambda value: copies[value] if value in copies else inside(value)))
        copies.update(zip(each.outputs, copy.outputs, strict=True))
    for value in closure.outputs:
        body.register_output(copies[value] if value in copies else inside(value))
    lift_closures(body)
    inputs = [value for value in taken if not value.is_constant]
    fork = node.graph.create("prim::fork", inputs).insert_before(node)
    fork.source_range = node.source_range
    fork.set("Subgraph", body)
    fork.output.set_type(node.output.type).copy_metadata(node.output)
    node.output.replace_all_uses_with(fork.output)
    node.destroy()
