"""Branches and loops as C++ statements.

In: `prim::If` and `prim::Loop`. Out: statements. Results of branches and loop-carried values become C++ variables, unless all
paths give the same known value. A loop's body is rewritten until the kinds of its carried values reach a fixed point.
"""

from __future__ import annotations

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.deploy.direct.statements import Statements
from rushlight.deploy.direct.values import MISSING, Kind, Operand, representation
from rushlight.jit.ir.graph import Block, Node, Value
from rushlight.jit.types import kinds as types

_SIMULATED_ITERATIONS = 3  # a loop is first simulated for this many iterations, to see which carried sizes change
_MAX_REWRITES = 12  # a loop is refused if its carried sizes still change after this many rewrites of its body


class NotYet(Unsupported):
    """A value was used before the analysis has found its kind; a later round has it."""


class Flow(Statements):
    """Writes control flow. `ended` says that the current block ends by raising. `unfinished` says that a part was skipped,
    which a later round of the analysis will write."""

    ended = False
    unfinished = False

    def node(self, node: Node) -> None:
        """Write a node."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write the open piece."""
        raise NotImplementedError

    def drop_piece(self) -> None:
        """Discard the open piece."""
        raise NotImplementedError

    def block(self, block: Block) -> None:
        """Write the nodes of a block, up to one that raises."""
        for node in block.nodes:
            self.node(node)
            if self.ended:
                return
        self.flush()

    def _write_inner_block(self, block: Block) -> tuple[list[str], list[Operand] | None]:
        """Return the statements of a block, and its results; None if it always raises."""
        outer, self.lines = self.lines, []
        try:
            self.block(block)
        except NotYet:
            self.drop_piece()
            self.unfinished = self.ended = True
        ended, self.ended = self.ended, False
        lines, self.lines = self.lines, outer
        return lines, None if ended else [self.operand(value) for value in block.outputs]

    # Branches

    def write_if(self, node: Node) -> None:
        """Write `prim::If`: only one branch if the condition is known."""
        self.flush()
        condition = self.operand(node.input())
        if condition.is_known:
            self._write_taken(node, node.blocks[0 if condition.value else 1])
            return
        test = self.spelled(condition, types.BOOL)
        parts = [self._write_inner_block(block) for block in node.blocks]
        results = [each for _, each in parts if each is not None]
        variables: list[str | None] = []
        for position, value in enumerate(node.outputs):
            self.values[value], variable = self._merge_branch_results(value, [each[position] for each in results])
            variables.append(variable)
            if variable is not None:
                self.emit(f"{representation(value.type)} {variable}{{}};", f"(void){variable};")
        for lines, found in parts:
            if found is not None:
                self._assign(node.outputs, variables, found, lines)
        self.emit(f"if ({test}) {{", *_indent(parts[0][0]), "} else {", *_indent(parts[1][0]), "}")
        self.ended = not results

    def _write_taken(self, node: Node, block: Block) -> None:
        self.block(block)
        if not self.ended:
            for value, inner in zip(node.outputs, block.outputs, strict=True):
                found = self.operand(inner)
                self.values[value] = self._as_type(found, value.type)

    @staticmethod
    def _as_type(found: Operand, kind: types.Type) -> Operand:
        """Return an operand cast to another type with the same C++ representation."""
        if found.is_known or found.text is None or representation(found.type) != representation(kind):
            return found
        return Operand(kind, found.kind, found.text, found.value, found.list, found.path)

    def _merge_branch_results(self, value: Value, options: list[Operand]) -> tuple[Operand, str | None]:
        """Return the merged result of branches, and the variable that holds it, if it needs one."""
        if not options:
            return Operand(value.type, value=None), None
        first = options[0]
        if len(options) > 1 and all(each is first for each in options):
            return first, None
        if first.path is not None and len(options) == 1 or all(_same_known(each, first) for each in options):
            return first, None
        if any(each.path is not None for each in options):
            raise Unsupported("branches that give different modules")
        kind: Kind | None = None
        for each in options:
            if not _is_undefined(each):
                kind = each.kind if kind is None else self.plan.join(kind, each.kind, value)
        variable = self.name()
        made = Operand(value.type, self.kind_or_default(value, kind), variable)
        return made, variable

    def _assign(self, values, variables: list[str | None], found: list[Operand], lines: list[str]) -> None:
        outer, self.lines = self.lines, lines
        for value, variable, each in zip(values, variables, found, strict=True):
            if variable is not None and not _is_undefined(each):
                self.emit(f"{variable} = {self.spelled(each, value.type)};")
        self.lines = outer

    # Loops

    def write_loop(self, node: Node) -> None:
        """Write `prim::Loop`."""
        self.flush()
        block = node.blocks[0]
        initial = [self.operand(value) for value in node.inputs[2:]]
        if any(each.path is not None for each in initial):
            raise Unsupported("a loop that carries a module")
        carried = block.inputs[1:]
        if node not in self.plan.kinds:
            self._simulate_iterations(node, initial)
        for value, each in zip(carried, initial, strict=True):
            self.plan.note((value, "carried"), each.kind)
        limit, condition = self.operand(node.input(0)), self.operand(node.input(1))
        limit_text, first = self.spelled(limit, types.INT), self.spelled(condition, types.BOOL)
        for _ in range(_MAX_REWRITES):
            before = [self.plan.kinds[value, "carried"] for value in carried]
            again = self._write_round(node, initial, before, limit_text, first)
            if [self.plan.kinds[value, "carried"] for value in carried] == before and again:
                return
        raise Unsupported("a loop whose sizes never settle")

    def _simulate_iterations(self, node: Node, initial: list[Operand]) -> None:
        """Simulate the first iterations, so that sizes that change between iterations get consistent examples."""
        self.plan.kinds[node] = Kind()
        carried, found = node.blocks[0].inputs[1:], [each.kind for each in initial]
        rows = [found]
        for _ in range(_SIMULATED_ITERATIONS):
            results = self._simulate_iteration(node, initial, found)
            if results is None:
                break
            found = [each.kind for each in results]
            rows.append(found)
        for position, value in enumerate(carried):
            last = rows[-1][position]
            for row in rows:  # join the kinds of all iterations; the last iteration's sizes are the example
                self.plan.note((value, "carried"), row[position])
            self._use_as_example(self.plan.kinds[value, "carried"], last)

    def _use_as_example(self, kind: Kind, last: Kind) -> None:
        if kind.shape is not None and last.shape is not None:
            for size, example in zip(kind.shape.sizes, last.shape.sizes, strict=True):
                if size in self.plan.hints:
                    self.plan.hints[size] = max(self.plan.hint(example), 2)
        if kind.size in self.plan.hints and last.size is not None:
            self.plan.hints[kind.size] = max(self.plan.hint(last.size), 2)

    def _simulate_iteration(self, node: Node, initial: list[Operand], kinds: list[Kind]) -> list[Operand] | None:
        """Return the results of a simulated iteration; None if it raises."""
        block, outer, values = node.blocks[0], self.lines, dict(self.values)
        self.lines = []
        self._bind_inputs(block, initial, kinds)
        _, found = self._write_inner_block(block)
        results = None if found is None else found[1:]
        self.lines, self.values = outer, values
        return results

    def _bind_inputs(self, block: Block, initial: list[Operand], kinds: list[Kind]) -> list[str]:
        """Bind the values of a body to variables, and return their names."""
        counter = block.inputs[0]
        size = self.plan.symbol((counter, "round"), None, (0, 1))
        names = [self.name("i"), *(self.name("c") for _ in kinds)]
        self.values[counter] = Operand(types.INT, Kind(size=size), names[0])
        for value, kind, first, name in zip(block.inputs[1:], kinds, initial, names[1:], strict=True):
            fixed = first.is_known and value not in self.plan.open
            kept = first if fixed else Operand(value.type, self.kind_or_default(value, kind), name)
            self.values[value] = kept
        return names

    def _is_changed(self, value: Value, name: str, after: Operand) -> bool:
        """Return whether the next iteration may change a loop-carried variable."""
        return self.values[value].text == name and after is not self.values[value] and not _is_undefined(after)

    def _write_round(self, node: Node, initial: list[Operand], kinds: list[Kind], limit: str, first: str) -> bool:
        """Write the loop. Return whether this text is final: a value stays known only if no iteration changes it."""
        block, count = node.blocks[0], len(self.lines)
        carried = block.inputs[1:]
        names = self._bind_inputs(block, initial, kinds)
        for value, name, start in zip(carried, names[1:], initial, strict=True):
            if self.values[value].text == name:
                text = f" = {self.spelled(start, value.type)}" if not _is_undefined(start) else "{}"
                self.emit(f"{representation(value.type)} {name}{text};", f"(void){name};")
        inner, results = self._write_inner_block(block)
        if results is not None:
            for value, start, after in zip(carried, initial, results[1:], strict=True):
                is_fixed = self.values[value].text is None and self.values[value].is_known
                if is_fixed and not (after is self.values[value] or _same_known(after, start)):
                    self.plan.open.add(value)
                    self.plan.grew = True
                    del self.lines[count:]
                    return False
                if not _is_undefined(after):
                    self.plan.note((value, "carried"), after.kind)
        again = self.name("again")
        if results is not None:
            outer, self.lines = self.lines, inner
            rows = zip(carried, names[1:], results[1:], strict=True)
            changed = [(value, name, after) for value, name, after in rows if self._is_changed(value, name, after)]
            texts = [(name, self.spelled(after, value.type), value) for value, name, after in changed]
            for name, text, value in texts:
                self.emit(f"const {representation(value.type)} next_{name} = {text};")
            self.emit(*(f"{name} = next_{name};" for name, _, _ in texts))
            self.emit(f"{again} = {self.spelled(results[0], types.BOOL)};")
            self.lines = outer
        if [self.plan.kinds[value, "carried"] for value in carried] != kinds:
            del self.lines[count:]
            return False
        self.emit(f"bool {again} = {first};", f"const int64_t limit_{again} = {limit};")
        self.emit(
            f"for (int64_t {names[0]} = 0; {again} && {names[0]} < limit_{again}; ++{names[0]}) {{", *_indent(inner), "}"
        )
        for value, inside in zip(node.outputs, carried, strict=True):
            self.values[value] = self.values[inside]
        return True


def _indent(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _is_undefined(operand: Operand) -> bool:
    return operand.value is UNDEFINED


class _Undefined:
    """The initial content of a variable that is not assigned yet."""


UNDEFINED = _Undefined()


def _same_known(one: Operand, other: Operand) -> bool:
    """Return whether two operands are known to be the same plain value."""
    if one.value is MISSING or other.value is MISSING or type(one.value) is not type(other.value):
        return False
    if isinstance(one.value, bool | int | str) or one.value is None:
        return one.value == other.value and one.type == other.type
    return isinstance(one.value, float) and one.value.hex() == other.value.hex()
