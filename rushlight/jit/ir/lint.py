"""Check a graph's invariants, which every pass must preserve."""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Node, Use, Value
from rushlight.jit.ir.handles import unwrapped


def lint(graph: Graph) -> None:
    """Raise RuntimeError, naming the node, where a value is used before its definition, uses or positions are inconsistent, two
    values have one name, or blocks and held graphs don't match."""
    graph = unwrapped(graph)
    if graph.block.owner is not None:
        raise RuntimeError("the graph's own block belongs to a node")
    _lint_block(graph.block, set())
    _lint_names(graph)


def _lint_block(block: Block, visible: set[Value]) -> None:
    _lint_outputs(block.param)
    known = visible | set(block.inputs)
    previous = block.param
    for node in block.nodes:
        if node.previous is not previous or previous.next is not node:
            raise RuntimeError(f"{node!r} and the node before it do not know one another")
        previous = node
        _lint_node(node, block, known)
        for inner in node.blocks:
            if inner.owner is not node:
                raise RuntimeError(f"a block of {node!r} belongs to another node")
            _lint_block(inner, known)
        known |= set(node.outputs)
    if block.result.previous is not previous:
        raise RuntimeError(f"the block that ends with {previous!r} ends with another node")
    _lint_inputs(block.result, known)


def _lint_node(node: Node, block: Block, known: set[Value]) -> None:
    if node.block is not block or node.graph is not block.graph:
        raise RuntimeError(f"{node!r} thinks it stands in another block")
    _lint_inputs(node, known)
    _lint_outputs(node)
    if node.kind == "prim::If":
        _lint_if(node)
    elif node.kind == "prim::Loop":
        _lint_loop(node)
    elif node.kind == "prim::Constant" and (node.inputs or len(node.outputs) != 1):
        raise RuntimeError(f"{node!r} must have no inputs and one output")
    held = node.attributes.get("Subgraph")
    if isinstance(held, Graph):
        _lint_held(node, held)


def _lint_inputs(node: Node, known: set[Value]) -> None:
    for index, value in enumerate(node.inputs):
        if value not in known:
            raise RuntimeError(f"{node!r} reads %{value.debug_name}, which is not made before it")
        if value.uses.count(Use(node, index)) != 1:
            raise RuntimeError(f"%{value.debug_name} does not know that {node!r} reads it")


def _lint_outputs(node: Node) -> None:
    for offset, value in enumerate(node.outputs):
        if value.node is not node or value.offset != offset:
            raise RuntimeError(f"output {offset} of {node!r} thinks another node makes it")
        for user, index in value.uses:
            if index >= user.input_count or user.input(index) is not value:
                raise RuntimeError(f"a use of %{value.debug_name} reads another value")
            if user.block is None:
                raise RuntimeError(f"{user!r} reads %{value.debug_name} and stands nowhere")


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


def _lint_held(node: Node, held: Graph) -> None:
    if node.kind == "prim::BailoutTemplate":  # a template is never executed; bailouts copy their continuation from it
        lint(held)
        return
    if len(held.inputs) != node.input_count:
        raise RuntimeError(f"the graph of {node!r} takes {len(held.inputs)} values and is given {node.input_count}")
    if node.kind != "prim::fork" and len(held.outputs) != len(node.outputs):
        raise RuntimeError(f"the graph of {node!r} gives {len(held.outputs)} values for {len(node.outputs)} outputs")
    lint(held)


def _lint_names(graph: Graph) -> None:
    """Check that names are unique: two values of one name would print alike."""
    seen: dict[str, Value] = {}
    pending = [graph.block]
    while pending:
        block = pending.pop()
        for node in (block.param, *block.nodes):
            pending += node.blocks
            for value in node.outputs:
                other = seen.setdefault(value.debug_name, value)
                if other is not value:
                    raise RuntimeError(f"two values are called %{value.debug_name}: of {other.node!r} and of {node!r}")
