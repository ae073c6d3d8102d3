"""EliminateDeadCode: nodes go whose results nothing reads and that do nothing else.

Requires: SSA. Guarantees: every node left has an effect, or a result that is used; ifs and loops have no unused outputs.

A node has an effect if its operator has (`print`, `raise`), if it writes to memory that something live may read, or if a
block of
it holds such a node.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import has_side_effects, writes
from rushlight.jit.passes.alias_analysis import AliasDb


def eliminate_dead_code(graph: Graph, keep_writes: bool = True) -> None:
    """Remove dead code. Writes are kept where what they write to may be seen: always, unless `keep_writes` is False and the
    written value is known to be local and dead."""
    aliases = AliasDb(graph)
    marker = _Marker(aliases)
    marker.mark_block(graph.block)
    _sweep(graph.block, marker)


class _Marker:
    """Finds the live nodes: backwards, until nothing changes."""

    def __init__(self, aliases: AliasDb):
        self.aliases = aliases
        self.live: set[Node] = set()
        self.live_values: set[Value] = set()

    def mark_block(self, block: Block) -> None:
        """Mark what a graph's results and effects need."""
        for value in block.outputs:
            self._mark_value(value)
        changed = True
        while changed:
            before = len(self.live)
            self._scan(block)
            changed = len(self.live) != before

    def _mark_value(self, value: Value) -> None:
        pending = [value]
        while pending:
            each = pending.pop()
            if each in self.live_values:
                continue
            self.live_values.add(each)
            if each.node.kind == "prim::Param":
                pending += self._behind_input(each)
                continue
            self._mark_node(each.node)
            pending += self._behind_output(each)

    def _behind_output(self, value: Value) -> list[Value]:
        node = value.node
        if node.kind == "prim::If":
            return [block.outputs[value.offset] for block in node.blocks]
        if node.kind == "prim::Loop":
            return [
                node.input(value.offset + 2),
                node.blocks[0].outputs[value.offset + 1],
                node.blocks[0].inputs[value.offset + 1],
            ]
        return [output for block in node.blocks for output in block.outputs]

    def _behind_input(self, value: Value) -> list[Value]:
        node = value.node.block.owner
        if node is None or node.kind != "prim::Loop" or value.offset == 0:
            return []
        return [node.input(value.offset + 1), node.blocks[0].outputs[value.offset]]

    def _mark_node(self, node: Node) -> None:
        while node is not None and node not in self.live:
            self.live.add(node)
            needed = node.inputs[:2] if node.kind == "prim::Loop" else node.inputs
            for value in needed:
                self._mark_value(value)
            if node.kind == "prim::Loop":
                self._mark_value(node.blocks[0].outputs[0])
            node = node.block.owner

    def _scan(self, block: Block) -> None:
        for node in block.reversed_nodes:
            if node not in self.live and self._has_effect(node):
                self._mark_node(node)
            for inner in node.blocks:
                self._scan(inner)

    def _has_effect(self, node: Node) -> bool:
        if has_side_effects(node):
            return True
        return any(self._may_be_seen(value) for value in writes(node))

    def _may_be_seen(self, written: Value) -> bool:
        return self.aliases.may_be_seen(written, self.live_values)


def _sweep(block: Block, marker: _Marker) -> None:
    """Destroy the dead nodes of a block, last first: what reads a dead node's results is dead, and gone already."""
    for node in block.reversed_nodes:
        if node not in marker.live:
            node.destroy()
        elif node.kind == "prim::If":
            _drop_if_outputs(node)
            for inner in node.blocks:
                _sweep(inner, marker)
        elif node.kind == "prim::Loop":
            _sweep_loop(node, marker)
        else:
            for inner in node.blocks:
                _sweep(inner, marker)


def _drop_if_outputs(node: Node) -> None:
    for index in range(len(node.outputs) - 1, -1, -1):
        if not node.outputs[index].uses:
            node.erase_output(index)
            for block in node.blocks:
                block.erase_output(index)


def _sweep_loop(node: Node, marker: _Marker) -> None:
    body = node.blocks[0]
    dead = [
        index
        for index in range(len(node.outputs) - 1, -1, -1)
        if node.outputs[index] not in marker.live_values and body.inputs[index + 1] not in marker.live_values
    ]
    for index in dead:
        body.erase_output(index + 1)
    _sweep(body, marker)
    for index in dead:
        node.erase_output(index)
        body.erase_input(index + 1)
        node.remove_input(index + 2)
