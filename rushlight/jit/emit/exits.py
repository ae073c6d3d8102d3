"""Convert exits to data flow: `return`, `break` and `continue` become values, and code that they skip is guarded by ifs.

In: a graph in SSA in which `prim::ReturnStmt(value)` leaves the graph, `prim::LoopContinuation(condition, carried...)` ends a
round of the innermost loop, and `prim::With` holds a body and its clean-up. Out: a graph without these. Last part of
`control_flow.py`.

A block that may be left early has additional outputs: a flag that says whether it was left, and the values that it was left
with. The code after it moves into an if on that flag. Loop continuations are converted first, then returns, which loops carry
outwards. Values that are never read come from `prim::Uninitialized` at the beginning of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.types.kinds import BOOL, Type
from rushlight.jit.types.relations import unify, unshaped

RETURN = "prim::ReturnStmt"
ROUND = "prim::LoopContinuation"


class Leaves(Enum):
    """Whether control leaves a block before its end."""

    NEVER = "never"
    MAYBE = "maybe"
    ALWAYS = "always"
    RAISES = "raises"


@dataclass
class Exit:
    """A block's early exit: whether it happens, its run-time flag, and the returned values."""

    leaves: Leaves
    flag: Value
    values: tuple[Value, ...] = ()


def transform_exits(graph: Graph) -> None:
    """Replace all exits; see the module's text."""
    for kind in (ROUND, RETURN):
        ExitTransformer(graph, kind).run()
    join_consecutive_ifs(graph.block)
    _splice_withs(graph.block)


class ExitTransformer:
    """Replaces the exits of one kind."""

    def __init__(self, graph: Graph, kind: str):
        self.graph = graph
        self.kind = kind
        self._missing: dict[int, Value] = {}
        with graph.inserting(at_start_of=graph.block):
            self.true, self.false = (self._flag_constant(truth) for truth in (True, False))
        self.unknown = self._insert_uninitialized(BOOL)
        self._target: Block | None = None

    def _flag_constant(self, truth: bool) -> Value:
        return self.graph.insert("prim::Constant").set("value", truth).output.set_type(BOOL)

    def _insert_uninitialized(self, kind: Type) -> Value:
        """Return the placeholder for a value that is never read: one per type object, as printed graphs have it."""
        if id(kind) not in self._missing:
            with self.graph.inserting(at_start_of=self.graph.block):
                self._missing[id(kind)] = self.graph.insert("prim::Uninitialized").output.set_type(kind)
        return self._missing[id(kind)]

    def run(self) -> None:
        """Rewrite the whole graph."""
        self._rewrite_within(self.graph.block, is_target=self.kind == RETURN)

    def _rewrite_within(self, block: Block, is_target: bool) -> Exit:
        """Rewrite a block, which is the exits' target or may contain exits."""
        outer, self._target = self._target, block if is_target else None
        found = self._rewrite_block(block)
        self._target = outer
        return found

    def _rewrite_block(self, block: Block) -> Exit:
        found = self._no_exit()
        for node in block.nodes:
            found = self._rewrite_node(node)
            if found.leaves in (Leaves.ALWAYS, Leaves.RAISES):
                self._drop_from(block, node)
                break
            if found.leaves is Leaves.MAYBE:
                if node.next is not block.result:
                    found = self._guard(block, node, found)
                break
        if block is self._target:
            self._set_target_outputs(block, found)
        return found

    def _no_exit(self) -> Exit:
        return Exit(Leaves.NEVER, self.false)

    def _rewrite_node(self, node: Node) -> Exit:
        if node.kind == self.kind:
            return Exit(Leaves.ALWAYS, self.true, node.inputs)
        if node.kind == "prim::RaiseException":
            return Exit(Leaves.RAISES, self.unknown)
        if node.kind == "prim::If":
            return self._rewrite_if(node, *(self._rewrite_block(block) for block in node.blocks))
        if node.kind == "prim::With":
            return self._rewrite_with(node)
        if node.kind == "prim::Loop":
            return self._rewrite_loop(node)
        for block in node.blocks:
            self._rewrite_within(block, is_target=False)
        return self._no_exit()

    def _drop_from(self, block: Block, node: Node) -> None:
        """Remove unreachable code: everything after a node, and the node itself if it is an exit."""
        rest = _nodes_after(block, node)
        made = {value for each in rest for value in each.outputs}
        for index, value in enumerate(block.outputs):
            if value in made:
                block.replace_output(index, self._insert_uninitialized(value.type))
        for each in reversed(rest):
            each.destroy()
        if node.kind == self.kind:
            node.destroy()

    def _set_target_outputs(self, block: Block, found: Exit) -> None:
        """Replace the outputs of the exits' target block by the values of the exit; if the exit is conditional, choose by its
        flag."""
        if found.leaves is Leaves.ALWAYS:
            for index, value in enumerate(found.values):
                block.replace_output(index, value)
        elif found.leaves is Leaves.MAYBE:
            node = self._if_at_end(block, found.flag)
            for index, (left, stayed) in enumerate(zip(found.values, block.outputs, strict=True)):
                block.replace_output(index, _add_if_output(node, (left, stayed)))

    def _if_at_end(self, block: Block, condition: Value) -> Node:
        with self.graph.inserting(at_end_of=block), self.graph.source(block.result.previous.source_range):
            node = self.graph.insert("prim::If", [condition], 0)
        node.add_block()
        node.add_block()
        return node

    def _rewrite_if(self, node: Node, first: Exit, second: Exit) -> Exit:
        leaves = _join_exits(first.leaves, second.leaves)
        if leaves in (Leaves.NEVER, Leaves.RAISES):
            return Exit(leaves, self.unknown if leaves is Leaves.RAISES else self.false)
        flag = self.true if leaves is Leaves.ALWAYS else _add_if_output(node, (first.flag, second.flag))
        given = (first.values or self._unread_values(second.values), second.values or self._unread_values(first.values))
        return Exit(leaves, flag, tuple(_add_if_output(node, pair) for pair in zip(*given, strict=True)))

    def _unread_values(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(self._insert_uninitialized(value.type) for value in values)

    def _guard(self, block: Block, node: Node, found: Exit) -> Exit:
        """Move the code after a node that may exit into an if."""
        rest = _nodes_after(block, node)
        outputs = block.outputs
        for each in rest:
            each.remove_from_list()
        guard = self._if_at_end(block, found.flag)
        left, stays = guard.blocks
        for each in rest:
            stays.append(each)
        for index, value in enumerate(outputs):
            left.add_output(self._insert_uninitialized(value.type))
            stays.add_output(value)
            block.replace_output(index, guard.add_output(value.type))
        return self._rewrite_if(guard, Exit(Leaves.ALWAYS, self.true, found.values), self._rewrite_block(stays))

    def _rewrite_with(self, node: Node) -> Exit:
        """Return the values that the body is left with become outputs, which represent them until the body is spliced."""
        body = node.blocks[0]
        found = self._rewrite_block(body)
        if found.leaves is Leaves.NEVER:
            return found
        made = []
        for value in (found.flag, *found.values):
            body.add_output(value)
            made.append(node.add_output(value.type))
        return Exit(found.leaves, made[0], tuple(made[1:]))

    def _rewrite_loop(self, node: Node) -> Exit:
        body = node.blocks[0]
        found = self._rewrite_within(body, is_target=self.kind == ROUND)
        if self.kind == ROUND or found.leaves in (Leaves.NEVER, Leaves.RAISES):
            return self._no_exit()
        goes_on = self._if_at_end(body, found.flag)
        body.replace_output(0, _add_if_output(goes_on, (self.false, body.outputs[0])))
        flag = self._carry(node, self.false, found.flag)
        values = [self._carry(node, self._insert_uninitialized(each.type), each) for each in found.values]
        return Exit(Leaves.MAYBE, flag, tuple(values))

    def _carry(self, node: Node, begin: Value, end: Value) -> Value:
        """Return one more value that a loop carries."""
        node.add_input(begin)
        node.blocks[0].add_input(None, end.type)
        node.blocks[0].add_output(end)
        return node.add_output(end.type)


def _join_exits(first: Leaves, second: Leaves) -> Leaves:
    """Return the exit of an if, from the exits of its branches. A branch that raises does not count."""
    if first is second or second is Leaves.RAISES:
        return first
    return second if first is Leaves.RAISES else Leaves.MAYBE


def _nodes_after(block: Block, node: Node) -> list[Node]:
    found, following = [], node.next
    while following is not block.result:
        found.append(following)
        following = following.next
    return found


def _add_if_output(node: Node, values: tuple[Value, Value]) -> Value:
    for block, value in zip(node.blocks, values, strict=True):
        block.add_output(value)
    first, second = (value.type for value in values)
    joined = unify(first, second) or unify(unshaped(first), unshaped(second), default_to_union=True)
    return node.add_output(joined or first)


# Merge consecutive ifs


def join_consecutive_ifs(block: Block) -> None:
    """Append the next node to an if, where that is an if on a result of the first that is constant in both branches."""
    for node in block.nodes:
        if node.kind == "prim::If":
            while _join_next(node):
                pass
        for inner in node.blocks:
            join_consecutive_ifs(inner)


def _join_next(node: Node) -> bool:
    following = node.next
    if following.kind != "prim::If" or following.input().node is not node:
        return False
    known = [block.outputs[following.input().offset].constant() for block in node.blocks]
    if not all(isinstance(each, bool) for each in known):
        return False
    added = []
    for block, truth in zip(node.blocks, known, strict=True):
        given = dict(zip(node.outputs, block.outputs, strict=True))
        added.append(_append_copy(block, following.blocks[0 if truth else 1], given))
    for index, value in enumerate(following.outputs):
        made = node.add_output(value.type)
        for block, values in zip(node.blocks, added, strict=True):
            block.add_output(values[index])
        value.replace_all_uses_with(made)
        if value.has_debug_name:
            made.debug_name = value.debug_name
    following.destroy()
    return True


def _append_copy(block: Block, source: Block, known: dict[Value, Value]) -> list[Value]:
    """Append copies of a block's nodes to another; `known` maps values from outside. Returns the copied outputs."""
    for each in source.nodes:
        copy = block.append(block.graph.clone_node(each, lambda value: known.get(value, value)))
        known.update(zip(each.outputs, copy.outputs, strict=True))
    return [known.get(value, value) for value in source.outputs]


# Splice with statements


def _splice_withs(block: Block) -> None:
    """Inline the body and the clean-up of with statements into the enclosing block."""
    for node in block.nodes:
        for inner in node.blocks:
            _splice_withs(inner)
        if node.kind != "prim::With":
            continue
        for value, inside in zip(node.outputs, node.blocks[0].outputs, strict=True):
            value.replace_all_uses_with(inside)
        for each in [moved for inner in node.blocks for moved in inner.nodes]:
            each.move_before(node)
        node.destroy()
