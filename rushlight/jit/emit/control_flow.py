"""From loads, stores and exits to SSA: the last step of emission.

In: a graph in which `prim::Load` and `prim::Store` read and write variables, `prim::ReturnStmt`, `prim::BreakStmt` and
`prim::ContinueStmt` leave blocks, and while loops have a block for their condition. Out: a graph without these: ifs have
outputs, loops carry values, and code after a possible exit is guarded by an if. Requires nothing else, guarantees `lint`.

First, loops and `continue` get their condition as input and output; then variables become values; `exits.py` does the rest.
"""

from __future__ import annotations

from rushlight.jit.emit.exits import RETURN, ROUND, transform_exits
from rushlight.jit.emit.loops import Ends
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.ir.names import is_meaningful
from rushlight.jit.types.kinds import BOOL, Type
from rushlight.jit.types.relations import unify, unshaped

_EXITS = {RETURN: Ends.ALL, "prim::RaiseException": Ends.ALL, ROUND: Ends.ROUND}


def convert_to_ssa(graph: Graph) -> None:
    """Replace exits, loads and stores; see the module's text."""
    LoopConditions(graph).run()
    SSAConverter(graph).run()
    transform_exits(graph)


# Loop conditions


class LoopConditions:
    """Gives every loop its condition as an input and as the first output of its body, and the same to every exit of a round."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def run(self) -> None:
        """Rewrite the whole graph."""
        with self.graph.inserting(at_start_of=self.graph.block):
            self.false = self.graph.insert("prim::Constant").set("value", False).output.set_type(BOOL)
        self._convert_block(self.graph.block, None)

    def _convert_block(self, block: Block, loop: Node | None) -> None:
        for node in block.nodes:
            if node.kind == "prim::Loop":
                self._convert_loop(node)
            elif node.kind in ("prim::BreakStmt", "prim::ContinueStmt"):
                self._end_round(node, loop)
            else:
                for inner in node.blocks:
                    self._convert_block(inner, loop)

    def _convert_loop(self, node: Node) -> None:
        with self.graph.source(node.source_range), self.graph.inserting(before=node):
            if len(node.blocks) == 2:
                first = _copy_into(self.graph, node.blocks[1])
            else:
                first = self.graph.insert("prim::Constant").set("value", True).output.set_type(BOOL)
        node.insert_input(1, first)
        self._convert_block(node.blocks[0], node)
        with self.graph.inserting(at_end_of=node.blocks[0]):
            node.blocks[0].insert_output(0, self._condition(node))
        if len(node.blocks) == 2:
            node.erase_block(1)

    def _condition(self, loop: Node) -> Value:
        """Inline the loop's condition here."""
        with self.graph.source(loop.source_range):
            return _copy_into(self.graph, loop.blocks[1]) if len(loop.blocks) == 2 else loop.input(1)

    def _end_round(self, node: Node, loop: Node) -> None:
        with self.graph.inserting(before=node), self.graph.source(node.source_range):
            condition = self._condition(loop) if node.kind == "prim::ContinueStmt" else self.false
            self.graph.insert(ROUND, [condition], 0)
        node.destroy()


def _copy_into(graph: Graph, check: Block) -> Value:
    copies: dict[Value, Value] = {}
    for each in check.nodes:
        copy = graph.insert_node(graph.clone_node(each, lambda value: copies.get(value, value)))
        copies.update(zip(each.outputs, copy.outputs, strict=True))
    return copies.get(check.outputs[0], check.outputs[0])


# Variables


class SSAConverter:
    """Turns loads and stores into values, with outputs of ifs and carried values of loops."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.kinds: dict[tuple[str, Value], Type] = {}
        """Declared types that are wider than the variable's value: Optional[int] for a None."""

    def run(self) -> None:
        """Convert the whole graph."""
        self._convert(self.graph.block, {}, ())

    def _convert(self, block: Block, known: dict[str, Value], carried: tuple[tuple[str, Type], ...]) -> dict[str, Value]:
        """Convert a block that begins with the variables `known`, inside a loop that carries some; returns the variables at its
        end."""
        current = dict(known)
        for node in block.nodes:
            if node.kind == "prim::Load":
                node.output.replace_all_uses_with(self._value_of_variable(current, node["name"], node.output.type, node))
                node.destroy()
            elif node.kind == "prim::Store":
                current[node["name"]] = node.input()
                self.kinds[node["name"], node.input()] = node.attributes.get("type", node.input().type)
                node.destroy()
            elif node.kind == "prim::If":
                self._convert_if(node, current, carried)
            elif node.kind == "prim::Loop":
                self._convert_loop(node, current)
            elif node.kind == "prim::With":
                self._convert_with(node, current, carried)
            elif node.kind == ROUND:
                for name, kind in carried:
                    node.add_input(self._value_of_variable(current, name, kind, node))
            else:
                for inner in node.blocks:
                    self._convert(inner, current, ())
        return current

    def _value_of_variable(self, current: dict[str, Value], name: str, kind: Type, before: Node) -> Value:
        """Return a variable's value. One without a value is only read by unreachable code."""
        return current[name] if name in current else self._insert_uninitialized(kind, before)

    def _insert_uninitialized(self, kind: Type, before: Node) -> Value:
        with self.graph.inserting(before=before):
            return self.graph.insert("prim::Uninitialized").output.set_type(kind)

    def _convert_if(self, node: Node, current: dict[str, Value], carried: tuple[tuple[str, Type], ...]) -> None:
        set_here = set().union(*map(_set_names, node.blocks))
        values = [self._convert(block, current, carried) for block in node.blocks]
        ends = [_ending_of(block) for block in node.blocks]
        # If both branches end, the code after the if is unreachable, so its values may be arbitrary.
        leaving = [each > min(ends) for each in ends]
        for name in sorted(name for name in {**values[0], **values[1]} if values[0].get(name) is not values[1].get(name)):
            found = [each.get(name) for each in values]
            kinds = [None if each is None else each.type for each, leaves in zip(found, leaving, strict=True) if not leaves]
            if None in kinds:
                continue
            kind = _unify_types(kinds)
            if kind is None or (min(ends) is not Ends.NOTHING and kind not in kinds):
                current.pop(name, None)
                continue
            for index, block in enumerate(node.blocks):
                given = found[index]
                if leaving[index] and not _is_given(given, kind, ends[index], name in set_here):
                    given = self._insert_uninitialized(kind, block.result)
                block.add_output(given)
            current[name] = _set_debug_name(node.add_output(kind), name)

    def _convert_with(self, node: Node, current: dict[str, Value], carried: tuple[tuple[str, Type], ...]) -> None:
        """Convert the body of a `with` block. A variable that the body sets becomes an output of the node, which represents its
        value until the body is spliced into the enclosing block."""
        body = node.blocks[0]
        ends = self._convert(body, current, carried)
        if _ending_of(body) is not Ends.NOTHING:
            return
        for name in sorted(name for name, value in ends.items() if current.get(name) is not value):
            body.add_output(ends[name])
            current[name] = node.add_output(ends[name].type)

    def _convert_loop(self, node: Node, current: dict[str, Value]) -> None:
        body = node.blocks[0]
        names = sorted({name for name in _stored_names(body) if name in current})
        inside = dict(current)
        for name in names:
            node.add_input(current[name])
            kind = self.kinds.get((name, current[name]), current[name].type)
            inside[name] = body.add_input(name if is_meaningful(name) else None, kind)
        carried = tuple((name, inside[name].type) for name in names)
        ends = self._convert(body, inside, carried)
        for name, kind in carried:
            body.add_output(self._value_of_variable(ends, name, kind, body.result))
            current[name] = _set_debug_name(node.add_output(kind), name)


def _unify_types(kinds: list[Type]) -> Type | None:
    joined: Type | None = kinds[0]
    for kind in kinds[1:]:
        joined = joined and (unify(joined, kind) or unify(unshaped(joined), unshaped(kind), default_to_union=True))
    return joined


def _set_debug_name(value: Value, name: str) -> Value:
    if is_meaningful(name):
        value.debug_name = name
    return value


def _set_names(block: Block) -> set[str]:
    """Return the variables that a block sets, except those set only in inner loops."""
    found: set[str] = set()
    for node in block.nodes:
        if node.kind == "prim::Store":
            found.add(node["name"])
        elif node.kind in ("prim::If", "prim::With"):
            found |= set().union(*map(_set_names, node.blocks))
    return found


def _stored_names(block: Block) -> list[str]:
    return [node["name"] for node in block.all_nodes() if node.kind == "prim::Store"]


def _is_given(value: Value | None, kind: Type, ends: Ends, set_here: bool) -> bool:
    """Return whether a branch that exits still passes a variable's value on, though nothing reads it."""
    return value is not None and unify(value.type, kind) == kind and not (ends is Ends.ALL and set_here)


def _ending_of(block: Block) -> Ends:
    """Return the exit that makes a block's end unreachable, if there is one."""
    return max((_ending_of_node(node) for node in block.nodes), default=Ends.NOTHING)


def _ending_of_node(node: Node) -> Ends:
    if node.kind == "prim::If":
        return min(_ending_of(inner) for inner in node.blocks)
    if node.kind == "prim::With":
        return _ending_of(node.blocks[0])
    return _EXITS.get(node.kind, Ends.NOTHING)
