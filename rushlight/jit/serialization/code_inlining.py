"""Which nodes are printed inside the expression that uses them, and which as statements of their own.

A result may be printed inside its only use if that does not change the order of evaluation: reading the block backwards,
argument by argument, must visit the nodes in reverse order. In: a block. Out: a set of nodes. Stage: jit, printing.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Node, Value

_NEVER = frozenset(("prim::isinstance", "prim::fork", "prim::Uninitialized", "prim::Enter", "prim::CreateObject",
                    "prim::ModuleContainerIndex"))  # fmt: skip
_MAX_NESTING = 50  # nested expressions; deeper ones are assigned to variables


def inlined_nodes(block: Block) -> set[Node]:
    """Return the nodes of a block, and of the blocks inside, that are printed within expressions."""
    scanner = _Scanner()
    scanner.block(block)
    return scanner.inlined


class _Scanner:
    def __init__(self) -> None:
        self.inlined: set[Node] = set()

    def block(self, block: Block) -> None:
        """Scan a block from its end."""
        self.node(block.result)
        for node in block.reversed_nodes:
            self.node(node)

    def node(self, node: Node) -> None:
        """Scan a statement."""
        if node in self.inlined or node.kind == "prim::Constant":
            return
        for block in node.blocks:
            self.block(block)
        point = _last_node_before(node)
        for value in reversed(node.inputs):
            if value.is_constant:
                continue
            if value.node is point and _can_stand_inside(value):
                self.inlined.add(value.node)
                point = self._last_node_inside(value.node, 0)

    def _last_node_inside(self, node: Node, depth: int) -> Node | None:
        point = _last_node_before(node)
        for value in reversed(node.inputs):
            if depth < _MAX_NESTING and not value.is_constant and value.node is point and _can_stand_inside(value):
                self.inlined.add(value.node)
                point = self._last_node_inside(value.node, depth + 1)
        return point


def _last_node_before(node: Node) -> Node | None:
    """Return the last non-constant node before one."""
    before = node.previous
    while before.kind == "prim::Constant":
        before = before.previous
    return None if before.kind in ("prim::Param", "prim::Return") else before


def _can_stand_inside(value: Value) -> bool:
    node = value.node
    if len(node.outputs) != 1 or len(value.uses) != 1 or node.blocks or node.kind in _NEVER:
        return False
    user, offset = value.uses[0]
    if user.block is not node.block and user is not node.block.result:
        return False
    if value.has_debug_name and user.kind != "prim::Return":
        return False
    return not (user.kind == "prim::Loop" and offset >= 2) and user.kind not in ("prim::fork", "prim::Enter", "prim::Exit")
