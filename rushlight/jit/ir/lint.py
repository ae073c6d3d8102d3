"""Whether a graph holds together: what every pass must leave true."""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Node, Use, Value
from rushlight.jit.ir.handles import unwrapped

_BLOCKS = {"prim::If": 2, "prim::Loop": 1, "prim::With": 1}


def lint(graph: Graph) -> None:
    """RuntimeError, naming the node, where a value is read before it is made, uses are out of step, or blocks do not fit."""
    _lint_block(unwrapped(graph).block, set())


def _lint_block(block: Block, visible: set[Value]) -> None:
    known = visible | set(block.inputs)
    for node in block.nodes:
        _lint_node(node, block, known)
        for inner in node.blocks:
            if inner.owner is not node:
                raise RuntimeError(f"a block of {node!r} belongs to another node")
            _lint_block(inner, known)
        known |= set(node.outputs)
    _lint_inputs(block.result, known)


def _lint_node(node: Node, block: Block, known: set[Value]) -> None:
    if node.block is not block or node.graph is not block.graph:
        raise RuntimeError(f"{node!r} thinks it stands in another block")
    _lint_inputs(node, known)
    for offset, value in enumerate(node.outputs):
        if value.node is not node or value.offset != offset:
            raise RuntimeError(f"output {offset} of {node!r} thinks another node makes it")
        if any(user.input(index) is not value for user, index in value.uses):
            raise RuntimeError(f"a use of %{value.debug_name} reads another value")
    if node.kind == "prim::If":
        _lint_if(node)
    elif node.kind == "prim::Loop":
        _lint_loop(node)


def _lint_inputs(node: Node, known: set[Value]) -> None:
    for index, value in enumerate(node.inputs):
        if value not in known:
            raise RuntimeError(f"{node!r} reads %{value.debug_name}, which is not made before it")
        if value.uses.count(Use(node, index)) != 1:
            raise RuntimeError(f"%{value.debug_name} does not know that {node!r} reads it")


def _lint_if(node: Node) -> None:
    if len(node.blocks) != 2 or node.input_count != 1:
        raise RuntimeError(f"{node!r} must have one input and two blocks")
    for block in node.blocks:
        if block.inputs or len(block.outputs) != len(node.outputs):
            raise RuntimeError(f"a branch of {node!r} gives {len(block.outputs)} values for {len(node.outputs)} outputs")


def _lint_loop(node: Node) -> None:
    carried = len(node.outputs)
    block = node.blocks[0] if len(node.blocks) == 1 else None
    if block is None or node.input_count != carried + 2:
        raise RuntimeError(f"{node!r} must have one block, and two inputs more than outputs")
    if len(block.inputs) != carried + 1 or len(block.outputs) != carried + 1:
        raise RuntimeError(f"the body of {node!r} must take and give {carried + 1} values")
