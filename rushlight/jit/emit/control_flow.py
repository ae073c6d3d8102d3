"""From loads, stores and exits to SSA: the last step of emission.

In: a graph in which `prim::Load` and `prim::Store` read and write variables, `prim::ReturnStmt`, `prim::BreakStmt` and
`prim::ContinueStmt` leave blocks, and while loops have a block for their condition. Out: a graph without these: ifs have
outputs,
loops carry values, and what follows a possible exit stands in an if. Requires nothing else, guarantees `lint`.

Exits first become variables, so that only variables are left to convert: a `return v` stores `$return` and, where the code
after
it may still be reached some other way, the flag `$left`, which what follows is made to depend on.
"""

from __future__ import annotations

from enum import Enum

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.ir.names import is_meaningful
from rushlight.jit.types.kinds import BOOL, Type
from rushlight.jit.types.relations import unify, unshaped

RETURN = "$return"
_EXITS = {"prim::ReturnStmt": "return", "prim::BreakStmt": "break", "prim::ContinueStmt": "continue"}


class Leaves(Enum):
    """Whether control leaves a block before its end."""

    NEVER = 0
    MAYBE = 1
    ALWAYS = 2


def convert_to_ssa(graph: Graph) -> None:
    """Replace exits, loads and stores; see the module's text."""
    ExitRemover(graph).run()
    _inline_conditions(graph.block)
    SSAConverter(graph).run()


class ExitRemover:
    """Turns exits into stores of variables and ifs around what follows."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._flags = 0

    def run(self) -> None:
        """Rewrite the whole graph."""
        last = self.graph.block.result.previous  # the load of $return stays where it is
        last.remove_from_list()
        self._block(self.graph.block, None, None)
        last.insert_before(self.graph.block.result)

    def _block(self, block: Block, loop: str | None, flag: str | None) -> Leaves:
        """Rewrite a block; `loop` is the flag variable of the loop around it, `flag` what an exit sets where someone asks."""
        for node in block.nodes:
            if node.kind in _EXITS:
                self._exit(node, loop, flag)
                self._destroy_after(block, node)
                node.destroy()
                return Leaves.ALWAYS
            if node.kind == "prim::RaiseException":
                self._destroy_after(block, node)
                return Leaves.ALWAYS
            leaves = self._nested(node, loop, flag)
            if leaves is Leaves.ALWAYS:
                self._destroy_after(block, node)
                return leaves
            if leaves is Leaves.MAYBE:  # without a flag of its own, it has taken what follows into a branch
                return self._guard(block, node, loop, flag) if "left" in node.attributes else leaves
        return Leaves.NEVER

    def _nested(self, node: Node, loop: str | None, flag: str | None) -> Leaves:
        if node.kind == "prim::If":
            return self._if(node, loop, flag)
        if node.kind == "prim::Loop":
            return self._loop(node, flag)
        if node.kind == "prim::With":
            return self._with(node, loop, flag)
        for block in node.blocks:
            self._block(block, None, None)
        return Leaves.NEVER

    def _exit(self, node: Node, loop: str | None, flag: str | None) -> None:
        with self.graph.inserting(before=node), self.graph.source(node.source_range):
            if node.kind == "prim::ReturnStmt":
                self._store(RETURN, node.input())
                if loop is not None:
                    self._store_flag(f"{loop}.return", True)
            if node.kind != "prim::ContinueStmt" and loop is not None:
                self._store_flag(f"{loop}.go", False)
            if flag is not None:
                self._store_flag(flag, True)

    def _store(self, name: str, value: Value) -> None:
        self.graph.insert("prim::Store", [value], 0).set("name", name)

    def _store_flag(self, name: str, value: bool) -> None:
        self._store(name, self.graph.insert("prim::Constant").set("value", value).output.set_type(BOOL))

    def _load_flag(self, name: str) -> Value:
        return self.graph.insert("prim::Load").set("name", name).output.set_type(BOOL)

    def _destroy_after(self, block: Block, node: Node) -> None:
        for index, value in enumerate(block.outputs):
            if value.node.block is block and value.node.is_after(node):
                with self.graph.inserting(before=node):
                    missing = self.graph.insert("prim::Uninitialized").output.set_type(value.type)
                block.replace_output(index, missing)
        for each in block.reversed_nodes:
            if each is node:
                break
            each.destroy()

    def _if(self, node: Node, loop: str | None, flag: str | None) -> Leaves:
        if not any(_has_exit(block) for block in node.blocks):
            return self._raising(node)
        inner = self._new_flag()
        leaves = [self._block(block, loop, inner) for block in node.blocks]
        if all(each is Leaves.ALWAYS for each in leaves):
            self._forget_flag(node, inner)
            return Leaves.ALWAYS
        if Leaves.ALWAYS in leaves and Leaves.NEVER in leaves and self._can_absorb(node):
            self._forget_flag(node, inner)
            return self._absorb(node, leaves, loop, flag)
        if all(each is Leaves.NEVER for each in leaves):
            return Leaves.NEVER
        for block, each in zip(node.blocks, leaves, strict=True):
            if each is Leaves.ALWAYS:
                with self.graph.inserting(at_end_of=block):
                    self._store_flag(inner, True)
        with self.graph.inserting(before=node):
            self._store_flag(inner, False)
        node.set("left", inner)
        return Leaves.MAYBE

    def _raising(self, node: Node) -> Leaves:
        """An if whose branches can only be left by exceptions: the code after it need not be guarded."""
        leaves = [self._block(block, None, None) for block in node.blocks]
        return Leaves.ALWAYS if leaves and all(each is Leaves.ALWAYS for each in leaves) else Leaves.NEVER

    def _can_absorb(self, node: Node) -> bool:
        """Whether what follows an if can move into one of its branches: nothing of it is read outside."""
        outputs = {value for each in self._after(node) for value in each.outputs}
        return not node.outputs and all(use.user is not node.block.result for value in outputs for use in value.uses)

    def _after(self, node: Node) -> list[Node]:
        rest = []
        following = node.next
        while following is not node.block.result:
            rest.append(following)
            following = following.next
        return rest

    def _absorb(self, node: Node, leaves: list[Leaves], loop: str | None, flag: str | None) -> Leaves:
        """Move what follows an if into its branch that does not leave; whether control leaves the block around then."""
        into, rest = node.blocks[leaves.index(Leaves.NEVER)], self._after(node)
        for each in rest:
            each.remove_from_list()
            into.append(each)
        after = self._block(into, loop, flag) if rest else Leaves.NEVER
        if after is Leaves.ALWAYS:
            return after
        if flag is None:
            return Leaves.NEVER
        with self.graph.inserting(at_end_of=node.blocks[leaves.index(Leaves.ALWAYS)]):
            self._store_flag(flag, True)
        return Leaves.MAYBE

    def _new_flag(self) -> str:
        self._flags += 1
        return f"$left{self._flags}"

    def _forget_flag(self, node: Node, flag: str) -> None:
        for block in node.blocks:
            for each in list(block.all_nodes()):
                if each.kind == "prim::Store" and each["name"] == flag:
                    each.destroy()

    def _guard(self, block: Block, node: Node, loop: str | None, flag: str | None) -> Leaves:
        """Put what follows a node that may leave into an if of its own."""
        inner = node["left"]
        del node.attributes["left"]
        rest = self._after(node)
        with self.graph.inserting(before=node.next), self.graph.source(node.source_range):
            guard = self.graph.insert("prim::If", [self._load_flag(inner)], 0)
        left, stays = guard.add_block(), guard.add_block()
        for each in rest:
            each.remove_from_list()
            stays.append(each)
        self._rescue_outputs(block, guard, stays)
        with self.graph.inserting(at_end_of=left):
            if flag is not None:
                self._store_flag(flag, True)
            if node.kind == "prim::Loop" and loop is not None:  # it was left by a return, which leaves the loop around, too
                self._store_flag(f"{loop}.return", True)
                self._store_flag(f"{loop}.go", False)
        leaves = self._block(stays, loop, flag)
        return Leaves.ALWAYS if leaves is Leaves.ALWAYS else Leaves.MAYBE if flag is not None else Leaves.NEVER

    def _rescue_outputs(self, block: Block, guard: Node, stays: Block) -> None:
        """A block's own output that was moved along (a loop's next condition) becomes an output of the guard."""
        moved = {value for each in stays.nodes for value in each.outputs}
        for index, value in enumerate(block.outputs):
            if value in moved:
                with self.graph.inserting(at_end_of=guard.blocks[0]):
                    missing = self.graph.insert("prim::Uninitialized").output.set_type(value.type)
                guard.blocks[0].add_output(missing)
                stays.add_output(value)
                block.replace_output(index, guard.add_output(value.type))

    def _with(self, node: Node, loop: str | None, flag: str | None) -> Leaves:
        """The clean-up stands after the body, whichever way that is left."""
        body, cleanup = node.blocks
        inner = self._new_flag()
        leaves = self._block(body, loop, inner)
        if leaves is Leaves.MAYBE:
            with self.graph.inserting(before=node):
                self._store_flag(inner, False)
        moved = [*body.nodes, *cleanup.nodes]
        for each in moved:
            each.remove_from_list()
            each.insert_before(node)
        if leaves is Leaves.MAYBE:
            node.set("left", inner)
            if not node.blocks[0].outputs:
                return leaves
        return leaves

    def _loop(self, node: Node, flag: str | None) -> Leaves:
        body = node.blocks[0]
        if not _has_exit(body):
            self._block(body, None, None)
            return Leaves.NEVER
        loop = self._new_flag()
        returns = _has_return(body)
        breaks = returns or _has_break(body)
        node.set("loop", loop if breaks else None)
        with self.graph.inserting(before=node), self.graph.source(node.source_range):
            if breaks:
                self._store_flag(f"{loop}.go", True)
            if returns:
                self._store_flag(f"{loop}.return", False)
        if breaks:
            with self.graph.inserting(at_start_of=body), self.graph.source(node.source_range):
                self._store_flag(f"{loop}.go", True)  # so that no round depends on the flag of the one before
        self._block(body, loop, None)
        if not returns:
            return Leaves.NEVER
        node.set("left", f"{loop}.return")
        return Leaves.MAYBE


def _exits(block: Block) -> set[str]:
    """The exits that leave a block: not those of loops inside, but returns from them."""
    found: set[str] = set()
    for node in block.nodes:
        if node.kind in _EXITS:
            found.add(_EXITS[node.kind])
        elif node.kind in ("prim::If", "prim::With"):
            for inner in node.blocks:
                found |= _exits(inner)
        elif node.kind == "prim::Loop":
            found |= _exits(node.blocks[0]) & {"return"}
    return found


def _has_exit(block: Block) -> bool:
    return bool(_exits(block))


def _has_return(block: Block) -> bool:
    return "return" in _exits(block)


def _has_break(block: Block) -> bool:
    return "break" in _exits(block)


# Loop conditions


def _inline_conditions(block: Block) -> None:
    """Give every loop its condition as an input and as the first output of its body."""
    for node in block.nodes:
        for inner in list(node.blocks):
            _inline_conditions(inner)
        if node.kind == "prim::With":
            node.destroy()
        elif node.kind == "prim::Loop":
            _inline_condition(node)


def _inline_condition(node: Node) -> None:
    graph, body = node.graph, node.blocks[0]
    go = node.attributes.pop("loop", None)
    with graph.source(node.source_range):
        if len(node.blocks) == 2:
            check = node.blocks[1]
            with graph.inserting(before=node):
                first = _copy_into(graph, check)
            node.insert_input(1, first)
            body.insert_output(0, _continue_condition(graph, body, check, f"{go}.go" if go else None))
            node.erase_block(1)
            return
        with graph.inserting(before=node):
            node.insert_input(1, graph.insert("prim::Constant").set("value", True).output.set_type(BOOL))
        with graph.inserting(at_end_of=body):
            if go is not None:
                again = graph.insert("prim::Load").set("name", f"{go}.go").output.set_type(BOOL)
            else:
                again = graph.insert("prim::Constant").set("value", True).output.set_type(BOOL)
            body.insert_output(0, again)


def _copy_into(graph: Graph, check: Block) -> Value:
    copies: dict[Value, Value] = {}
    for each in check.nodes:
        copy = graph.insert_node(graph.clone_node(each, lambda value: copies.get(value, value)))
        copies.update(zip(each.outputs, copy.outputs, strict=True))
    return copies.get(check.outputs[0], check.outputs[0])


def _continue_condition(graph: Graph, body: Block, check: Block, go: str | None) -> Value:
    """The condition at the end of a body; where a break left it, False without asking."""
    if go is None:
        with graph.inserting(at_end_of=body):
            return _copy_into(graph, check)
    with graph.inserting(at_end_of=body):
        again = graph.insert("prim::Load").set("name", go).output.set_type(BOOL)
        if all(each.kind == "prim::Constant" for each in check.nodes) and check.outputs[0].constant() is True:
            return again
        node = graph.insert("prim::If", [again], 0)
    with graph.inserting(at_end_of=node.add_block()):
        node.blocks[0].add_output(_copy_into(graph, check))
    with graph.inserting(at_end_of=node.add_block()):
        node.blocks[1].add_output(graph.insert("prim::Constant").set("value", False).output.set_type(BOOL))
    return node.add_output(BOOL)


# Variables


class SSAConverter:
    """Turns loads and stores into values, with outputs of ifs and carried values of loops."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def run(self) -> None:
        """Convert the whole graph."""
        self._convert(self.graph.block, {})

    def _convert(self, block: Block, known: dict[str, Value]) -> dict[str, Value]:
        """Convert a block that begins with `known` variables; what they are at its end."""
        current = dict(known)
        for node in block.nodes:
            if node.kind == "prim::Load":
                node.output.replace_all_uses_with(self._read(node, current))
                node.destroy()
            elif node.kind == "prim::Store":
                current[node["name"]] = node.input()
                node.destroy()
            elif node.kind == "prim::If":
                self._if(node, current)
            elif node.kind == "prim::Loop":
                self._loop(node, current)
            else:
                for inner in node.blocks:
                    self._convert(inner, current)
        return current

    def _read(self, node: Node, current: dict[str, Value]) -> Value:
        found = current.get(node["name"])
        if found is None:  # only code that is never reached reads it
            with self.graph.inserting(before=node):
                found = self.graph.insert("prim::Uninitialized").output.set_type(node.output.type)
        return found

    def _if(self, node: Node, current: dict[str, Value]) -> None:
        ends = [self._convert(block, current) for block in node.blocks]
        raising = [_always_raises(block) for block in node.blocks]
        names = [name for name in dict.fromkeys((*ends[0], *ends[1])) if ends[0].get(name) is not ends[1].get(name)]
        for name in names:
            values = [end.get(name) for end in ends]
            if None in values and not (name.startswith("$") or any(raising)):
                continue
            kind = self._joined(values, raising)
            if kind is None:
                current.pop(name, None)
                continue
            for block, value, raises in zip(node.blocks, values, raising, strict=True):
                unfit = value is None or (raises and not _fits(value, kind))
                block.add_output(self._missing(block, kind) if unfit else value)
            made = node.add_output(kind)
            if is_meaningful(name):
                made.debug_name = name
            current[name] = made

    def _joined(self, values: list[Value | None], raising: list[bool]) -> Type | None:
        kinds = [value.type for value, raises in zip(values, raising, strict=True) if value is not None and not raises]
        kinds = kinds or [value.type for value in values if value is not None]
        joined: Type | None = kinds[0]
        for kind in kinds[1:]:
            joined = joined and (unify(joined, kind) or unify(unshaped(joined), unshaped(kind), default_to_union=True))
        return joined

    def _missing(self, block: Block, kind: Type) -> Value:
        with self.graph.inserting(at_end_of=block):
            return self.graph.insert("prim::Uninitialized").output.set_type(kind)

    def _loop(self, node: Node, current: dict[str, Value]) -> None:
        body = node.blocks[0]
        carried = [name for name in dict.fromkeys(_stored(body)) if name in current or name == RETURN]
        inside = dict(current)
        for name in carried:
            begin = current.get(name)
            if begin is None:
                begin = self._uninitialized_before(node, body, name)
            node.add_input(begin)
            inside[name] = body.add_input(None if name.startswith("$") else name, begin.type)
        ends = self._convert(body, inside)
        for name in carried:
            body.add_output(ends[name])
            made = node.add_output(inside[name].type)
            if is_meaningful(name):
                made.debug_name = name
            current[name] = made

    def _uninitialized_before(self, node: Node, body: Block, name: str) -> Value:
        kind = next(each.input().type for each in body.all_nodes() if each.kind == "prim::Store" and each["name"] == name)
        with self.graph.inserting(before=node):
            return self.graph.insert("prim::Uninitialized").output.set_type(kind)


def _fits(value: Value, kind: Type) -> bool:
    return unify(value.type, kind) == kind


def _stored(block: Block) -> list[str]:
    return [node["name"] for node in block.all_nodes() if node.kind == "prim::Store"]


def _always_raises(block: Block) -> bool:
    last = block.result.previous
    if last.kind == "prim::If":
        return all(_always_raises(inner) for inner in last.blocks)
    return last.kind == "prim::RaiseException"
