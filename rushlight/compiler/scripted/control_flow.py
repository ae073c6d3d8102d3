"""`prim::If` and `prim::Loop` in structured programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rushlight.compiler.scripted.lists import EmptyList
from rushlight.compiler.scripted.plan import NeedsKind
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.tensors import Tensors
from rushlight.compiler.scripted.values import Elements, Maybe, Plain, Undefined, kind_of_type, without_none
from rushlight.inductor.structured import (
    INT,
    Branch,
    Kind,
    ListOf,
    Literal,
    Null,
    Operand,
    Repeat,
    Scalar,
    Statement,
    Stop,
    TensorOf,
    Var,
)
from rushlight.jit.ir.graph import Block, Node, Value


@dataclass
class _Carried:
    """A loop's carried variables with their initial values. `pairs` has, for each value of the loop, its variable, and, if it
    may be None, the flag variable that says whether it is present."""

    pairs: list[tuple[Var | None, Var | None]] = field(default_factory=list)
    variables: list[tuple[Var, Operand]] = field(default_factory=list)


class ControlFlow(Tensors):
    """Translates branches and loops. `draft`: a branch was left out, because a type in it is only found later."""

    draft = False

    def _translate_block(self, block: Block, body: list[Statement]) -> None:
        """Translate the nodes of a block."""
        raise NotImplementedError

    # Translate branches

    def _translate_if(self, node: Node, body: list[Statement]) -> None:
        """Translate `prim::If`: a known condition selects a branch, any other becomes an if of the program."""
        condition = self._operand(node.input(), body)
        if isinstance(condition, Literal):
            self._translate_taken_branch(node, node.blocks[0] if condition.value else node.blocks[1], body)
            return
        self._flush(body)
        lengths = dict(self.lengths)
        parts: list[list[Statement]] = []
        found: list[list[object] | None] = []
        ends = []
        for block in node.blocks:
            part: list[Statement] = []
            self.lengths = dict(lengths)
            found.append(self._branch_results(block, part))
            parts.append(part)
            ends.append(self.lengths)
        self.lengths = {var: ends[0][var] if ends[0].get(var) == ends[1].get(var) else None for var in ends[0]}
        results: list[tuple[Var, Operand | None, Operand | None]] = []
        for index, value in enumerate(node.outputs):
            self.values[value] = self._merge_branches(value, [each and each[index] for each in found], parts, results)
        body.append(Branch(condition, parts[0], parts[1], results))

    def _branch_results(self, block: Block, part: list[Statement]) -> list[object] | None:
        """Return a branch's results; None if it never ends, or needs a type that is found later."""
        if any(each.kind == "prim::RaiseException" for each in block.nodes):
            part.append(Stop())
            return None
        depth, loop = self.depth, self.loop
        try:
            self._translate_block(block, part)
            results = [self._result(value, part) for value in block.outputs]
            self._flush(part)
        except NeedsKind:
            self.draft, self.piece, self.depth, self.loop = True, None, depth, loop
            return None
        return results

    def _result(self, value: Value, part: list[Statement]) -> object:
        """Return a result of a block, which may be None, or undefined."""
        if self._is_open(value):
            self._flush(part)
        found = self._value(value)
        if isinstance(found, Maybe | Undefined | EmptyList) or (isinstance(found, Plain) and found.value is None):
            return found
        return self._contiguous_unless_written(self._operand(value, part), part)

    def _contiguous_unless_written(self, operand: Operand, part: list[Statement]) -> Operand:
        is_written = isinstance(operand, Var) and not self.makers.get(operand, frozenset()).isdisjoint(self.plan.written)
        return operand if is_written else self._contiguous(operand, part)

    def _merge_branches(self, value: Value, options: list, parts: list, results: list) -> object:
        """Return the result of an if, merged from its branches."""
        given = [each for each in options if each is not None and not isinstance(each, Undefined)]
        if not given:
            undefined = [each for each in options if isinstance(each, Undefined)]
            return undefined[0] if undefined else Undefined(without_none(value.type))
        if any(isinstance(each, EmptyList) for each in given):
            return self._merge_lists(value, given)
        if any(isinstance(each, Maybe | Plain) for each in given):
            return self._merge_optional(options, parts, results)
        return self._add_if_result(options, given, results)

    def _merge_lists(self, value: Value, given: list) -> object:
        """Merge a result that is an empty list in some branch: the element type comes from the other branch."""
        if all(each is given[0] for each in given):
            return given[0]
        for each in given:
            if isinstance(each, Var):
                for empty in given:
                    if isinstance(empty, EmptyList):
                        self.plan.note_kind(empty.value, each.kind)
        raise Unsupported("branches that give different lists of tensors")

    def _add_if_result(self, options: list, given: list, results: list) -> Operand:
        """Return the variable for a result of an if."""
        if len(given) == len(options) and all(each is given[0] for each in given):
            return given[0]
        kinds = {option.kind for option in given}
        if len(kinds) != 1:
            raise Unsupported("branches whose results differ in type or size")
        kind = kinds.pop()
        made = self._new_variable(kind)
        row = [Null(kind) if isinstance(each, Undefined) else each for each in options]
        results.append((made, row[0], row[1]))
        if isinstance(kind, TensorOf):
            self.makers[made] = frozenset().union(*(self.makers.get(each, ()) for each in given if isinstance(each, Var)))
        return made

    def _merge_optional(self, options: list, parts: list, results: list) -> Maybe | Plain:
        """Merge a result that is None in some branch into a Maybe: a flag and a value."""
        if all(isinstance(each, Undefined) or (isinstance(each, Plain) and each.value is None)
               for each in options if each is not None):  # fmt: skip
            return Plain(None)
        present, values = [], []
        for each in options:
            if isinstance(each, Plain) and each.value is not None:
                raise Unsupported("branches that give constants")
            is_none = isinstance(each, Plain | Undefined)  # an undefined value is never read
            present.append(None if each is None else each.present if isinstance(each, Maybe) else Literal(not is_none))
            values.append(None if each is None or is_none else each.value if isinstance(each, Maybe) else each)
        known = [each for each in values if each is not None]
        if not known:
            return Maybe(self._add_if_result(present, [each for each in present if each is not None], results), None)
        kind = known[0].kind
        pairs = zip(values, options, strict=True)
        row = [Null(kind) if each is None and option is not None else each for each, option in pairs]
        flag = self._add_if_result(present, [each for each in present if each is not None], results)
        return Maybe(flag, self._add_if_result(row, [each for each in row if each is not None], results))

    def _translate_taken_branch(self, node: Node, block: Block, body: list[Statement]) -> None:
        """Translate an if whose condition is known."""
        self._translate_block(block, body)
        for value, inner in zip(node.outputs, block.outputs, strict=True):
            if self._is_open(inner):
                self._flush(body)
            self.values[value] = self._value(inner)
            if isinstance(self.values[value], Undefined):
                self.values[value] = Undefined(without_none(value.type))

    # Translate loops

    def _translate_loop(self, node: Node, body: list[Statement]) -> None:
        """Translate `prim::Loop` as a loop of the program; if that fails, try to unroll it."""
        limit = self._operand(node.input(0), body)
        try:
            self._as_loop(node, limit, body)
        except NeedsKind:
            raise
        except Unsupported as reason:
            if not isinstance(limit, Literal):
                raise
            self.plan.unroll(node, limit.value, reason)

    def _as_loop(self, node: Node, limit: Operand, body: list[Statement]) -> None:
        condition = self._operand(node.input(1), body)
        block = node.blocks[0]
        initial = [self._result(value, body) for value in node.inputs[2:]]
        self._flush(body)
        counter = self._var("i", INT)
        self.values[block.inputs[0]] = counter
        carried = self._make_carried_variables(block, initial, body)
        before = dict(self.lengths)
        inner: list[Statement] = []
        self.depth += 1
        self.loop = (*self.loop, node)
        self._translate_block(block, inner)
        again = self._operand(block.outputs[0], inner)
        following = [self._values_of_next_round(block, index, carried, inner) for index in range(len(initial))]
        self._flush(inner)
        self.depth -= 1
        self.loop = self.loop[:-1]
        self._update_lengths(before, limit, condition == again == Literal(True))
        rows = [each for part in following for each in part]
        carries = [(var, first, after) for (var, first), after in zip(carried.variables, rows, strict=True)]
        pointers = frozenset(var for value in block.inputs[1:] for var in self._pointers(value))
        body.append(Repeat(counter, limit, condition, inner, again, carries, pointers))
        for value, inside in zip(node.outputs, block.inputs[1:], strict=True):
            self.values[value] = self.values[inside]

    def _pointers(self, value: Value) -> list[Var]:
        found = self.values[value]
        found = found.value if isinstance(found, Maybe) else found
        return [found] if value in self.plan.pointers and isinstance(found, Var) else []

    def _make_carried_variables(self, block: Block, initial: Sequence[object], body: list[Statement]) -> _Carried:
        """Make the variables that a loop carries."""
        carried = _Carried()
        for value, first in zip(block.inputs[1:], initial, strict=True):
            if isinstance(first, Elements):
                raise Unsupported("a list of constants that a loop changes")
            is_list = isinstance(first, Var) and isinstance(first.kind, ListOf)
            if isinstance(first, EmptyList) or (is_list and value not in self.plan.pointers | self.plan.optional):
                carried.pairs.append((None, None))
                self.values[value] = first
                continue
            is_none = isinstance(first, Plain)
            if isinstance(first, Maybe) or is_none or value in self.plan.optional:
                self._carry_optional(value, first, carried)
                continue
            kind = self._kind_undefined(value, first) if isinstance(first, Undefined) else first.kind
            if kind is None:
                self.values[value] = Undefined(first.type)
                carried.pairs.append((None, None))
                continue
            var = self._carry(value, kind, Null(kind) if isinstance(first, Undefined) else first, carried)
            self.values[value] = var
            carried.pairs.append((var, None))
        return carried

    def _kind_undefined(self, value: Value, first: Undefined) -> Kind | None:
        return kind_of_type(first.type) or self.plan.kinds.get(value)

    def _carry(self, value: Value, kind: Kind, first: Operand, carried: _Carried) -> Var:
        """Add a carried variable with its initial value to a loop."""
        var = self._new_variable(kind)
        carried.variables.append((var, first))
        if isinstance(kind, ListOf):
            self.lengths[var] = None
            if isinstance(first, Var):
                self.lengths[first] = None
        elif isinstance(kind, TensorOf):
            self.makers[var] = self.makers.get(first, frozenset()) if isinstance(first, Var) else frozenset()
            self.makers[var] |= {value, *self.plan.flows.get(value, ())}
            self.loops.setdefault(value, self.loop)
        return var

    def _carry_optional(self, value: Value, first: object, carried: _Carried) -> None:
        """Carry an optional value in two variables: a flag and the value. The type of an absent value is found after the
        body."""
        if isinstance(first, Undefined):
            raise Unsupported("an optional value that is not initialized")
        if isinstance(first, Plain):
            present, inside = Literal(False), None
        elif isinstance(first, Maybe):
            present, inside = first.present, first.value
        else:
            present, inside = Literal(True), first
        kind = self.plan.kinds.get(value) if inside is None else inside.kind
        flag = self._new_variable(Literal(True).kind)
        carried.variables.append((flag, present))
        if kind is None:
            self.values[value] = Maybe(flag, None)
            carried.pairs.append((None, flag))
            return
        var = self._carry(value, kind, Null(kind) if inside is None else inside, carried)
        self.values[value] = Maybe(flag, var)
        carried.pairs.append((var, flag))

    def _values_of_next_round(self, block: Block, index: int, carried: _Carried, inner: list[Statement]) -> list[Operand]:
        """Return the values for the next round, in the order of the loop's variables."""
        value, (var, flag) = block.inputs[index + 1], carried.pairs[index]
        after = self._result(block.outputs[index + 1], inner)
        if var is None and flag is None:
            self._find_kind(value, after)
            return []
        if flag is None:
            return [self._value_after_loop(value, var, after)]
        if isinstance(after, Plain):
            return [Literal(False)] + ([Null(var.kind)] if var is not None else [])
        present = after.present if isinstance(after, Maybe) else Literal(True)
        inside = after.value if isinstance(after, Maybe) else after
        if var is None:
            if isinstance(inside, Var | Literal | Null):
                self.plan.note_kind(value, inside.kind)
            return [present]
        return [present, Null(var.kind) if inside is None else self._value_after_loop(value, var, inside)]

    def _find_kind(self, value: Value, after: object) -> None:
        """Record the type of a value that was undefined, or an empty list, before the loop."""
        before = self.values[value] = self._value(value)
        if isinstance(before, EmptyList) and after is not before:
            if isinstance(after, Var):
                self.plan.note_kind(before.value, after.kind)
            raise Unsupported("a loop that changes which empty list it carries")
        if isinstance(before, Var) and after is not before:
            if isinstance(after, Plain | Maybe):
                self.plan.may_be_none(value)
            self.plan.point(value)
        if isinstance(before, Undefined) and isinstance(after, Var | Literal):
            self.plan.note_kind(value, after.kind)

    def _value_after_loop(self, value: Value, var: Var, after: object) -> Operand:
        """Return the operand for a carried variable after a round of the loop."""
        if isinstance(after, Undefined):
            return Null(var.kind)
        if isinstance(after, Maybe) or isinstance(after, Plain):
            self.plan.may_be_none(value)
        if not isinstance(after, Var | Literal | Null):
            raise Unsupported("a loop that carries what has no form")
        same = isinstance(var.kind, TensorOf) and isinstance(after.kind, TensorOf) and var.kind.strides is None
        if same and (after.kind.dtype, after.kind.size) == (var.kind.dtype, var.kind.size):
            self._check_memory(value, var, after)
            return after
        if var.kind != after.kind and not (isinstance(var.kind, Scalar) and isinstance(after, Null)):
            raise Unsupported("a loop that changes the type or size of what it carries")
        if isinstance(var.kind, TensorOf):
            self._check_memory(value, var, after)
        return after

    def _check_memory(self, value: Value, var: Var, after: Operand) -> None:
        """Carry the memory itself if a copy would be observable; the memory must exist before the loop."""
        if after is var or not isinstance(after, Var):
            return
        makers = self.makers.get(after, frozenset())
        outside = {maker for maker in makers if self.loops.get(maker, self.loop)[: len(self.loop)] != self.loop}
        if outside.isdisjoint(self.plan.written) and value not in self.plan.written:
            return
        if makers != outside or after.kind != var.kind:
            raise Unsupported("a loop that carries tensors which are written to")
        self.plan.flow(value, makers)
        self.plan.point(value)

    def _update_lengths(self, before: dict[Var, int | None], limit: Operand, is_for: bool) -> None:
        """Update the known lengths of lists after a loop of `limit` rounds."""
        rounds = limit.value if isinstance(limit, Literal) and is_for else None
        after = {}
        begun = {var: 0 for var, loop in self.settled.items() if var not in before and len(loop) <= len(self.loop)}
        for var, start in (before | begun).items():
            length = self.lengths[var]
            if length is None or start is None or (rounds is None and length != start):
                after[var] = None
                if is_for and length is not None and start is not None and isinstance(limit, Var):
                    self.length_origins[var] = self.origins.get(limit, frozenset())
            else:
                after[var] = start + (length - start) * max(rounds or 0, 0)
        self.lengths = after
