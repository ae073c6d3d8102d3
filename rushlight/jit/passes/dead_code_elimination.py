"""EliminateDeadCode: remove nodes with unused results and no effect.

Requires: SSA. Guarantees: every node left has an effect, or a result that is used; ifs and loops have no unused outputs. After
`eliminate_unused_code`, loops may still carry values that only their own next round reads, as printed scripted graphs do.

A node has an effect if its operator has (`print`, `raise`), if it writes to memory that something live may read, or if one of
its blocks contains such a node.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import has_side_effects, writes
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass

_LOG = PassLog(__file__)


@graph_pass("EliminateDeadCode", "_jit_pass_dce_graph")
def eliminate_dead_code(graph: Graph) -> None:
    """Remove dead code. Writes to memory that may be observed stay."""
    _eliminate(graph, _Marker(AliasDb(graph)))


def eliminate_unused_code(graph: Graph) -> None:
    """Remove dead code, except computations of loops' conditions and of carried values that bodies read."""
    marker = _Marker(AliasDb(graph), keeps_rounds=True)
    for node in graph.find_all_nodes("prim::Loop"):
        body = node.blocks[0]
        pairs = zip(body.inputs, body.outputs, strict=True)
        marker.mark([end for begin, end in pairs if begin is body.inputs[0] or begin.uses])
    _eliminate(graph, marker)


@graph_pass("EliminateDeadCodeKeepingWrites", "_jit_pass_dce")
def eliminate_dead_code_keeping_writes(graph: Graph) -> None:
    """Remove dead code; every write stays."""
    _eliminate(graph, _Marker(None))


@graph_pass("EliminateDeadCodeWithEffects", "_jit_pass_dce_allow_deleting_nodes_with_side_effects")
def eliminate_dead_code_with_effects(graph: Graph) -> None:
    """Remove everything with unused results, including prints and writes."""
    _eliminate(graph, _Marker(AliasDb(graph), keeps_effects=False))


def _eliminate(graph: Graph, marker: _Marker) -> None:
    marker.mark_block(graph.block)
    _sweep(graph.block, marker)


class _Marker:
    """Finds live nodes, backwards and up to a fixed point. Without `aliases`, every write is an effect."""

    def __init__(self, aliases: AliasDb | None, keeps_effects: bool = True, keeps_rounds: bool = False):
        self.aliases = aliases
        self.keeps_effects = keeps_effects
        self.keeps_rounds = keeps_rounds
        self.live: set[Node] = set()
        self.live_values: set[Value] = set()
        self.live_memory: set[object] = set()

    def mark_block(self, block: Block) -> None:
        """Mark the nodes that a graph's results and effects need."""
        self.mark(list(block.outputs))
        changed = True
        while changed:
            before = len(self.live)
            self._scan(block)
            changed = len(self.live) != before

    def mark(self, pending: list[Value]) -> None:
        """Mark values and everything that they need, iteratively, because chains of nodes may be long."""
        while pending:
            each = pending.pop()
            if each in self.live_values:
                continue
            self.live_values.add(each)
            if self.aliases is not None:
                self.aliases.add_reachable(self.live_memory, each)
            if each.node.kind == "prim::Param":
                pending += self._values_passed_as(each)
                continue
            pending += self._needs(each.node)
            pending += self._values_returned_as(each)

    def _values_returned_as(self, value: Value) -> list[Value]:
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

    def _values_passed_as(self, value: Value) -> list[Value]:
        node = value.node.block.owner
        if node is None or node.kind != "prim::Loop" or value.offset == 0:
            return []
        return [node.input(value.offset + 1), node.blocks[0].outputs[value.offset]]

    def _needs(self, node: Node) -> list[Value]:
        """Mark a node and its enclosing nodes as live; returns their inputs."""
        found: list[Value] = []
        while node is not None and node not in self.live:
            self.live.add(node)
            found += node.inputs if self.keeps_rounds or node.kind != "prim::Loop" else node.inputs[:2]
            if node.kind == "prim::Loop":
                found.append(node.blocks[0].outputs[0])
            node = node.block.owner
        return found

    def _scan(self, block: Block) -> None:
        for node in block.reversed_nodes:
            if node not in self.live and self._has_effect(node):
                self.mark(self._needs(node))
            for inner in node.blocks:
                self._scan(inner)

    def _has_effect(self, node: Node) -> bool:
        if not self.keeps_effects:
            return False
        if has_side_effects(node) or (self.aliases is None and writes(node)):
            return True
        return any(self._may_be_seen(value) for value in writes(node))

    def is_dead(self, node: Node, index: int) -> bool:
        """Return whether a loop need not carry one of its values."""
        after, inside = node.outputs[index], node.blocks[0].inputs[index + 1]
        if self.keeps_rounds:
            return not after.uses and not inside.uses
        return after not in self.live_values and inside not in self.live_values

    def _may_be_seen(self, written: Value) -> bool:
        return self.aliases.may_be_seen(written, self.live_memory)


def _sweep(block: Block, marker: _Marker) -> None:
    """Destroy the dead nodes of a block, last first: users of a dead node are dead, and gone already."""
    for node in block.reversed_nodes:
        if node not in marker.live:
            if _LOG.permits("{} is dead and is removed: {}", node.kind, node):
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
    dead = [index for index in range(len(node.outputs) - 1, -1, -1) if marker.is_dead(node, index)]
    for index in dead:
        body.erase_output(index + 1)
    _sweep(body, marker)
    for index in dead:
        node.erase_output(index)
        body.erase_input(index + 1)
        node.remove_input(index + 2)
