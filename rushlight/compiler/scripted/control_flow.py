"""`prim::If` and `prim::Loop` in structured programs."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.tensors import Tensors
from rushlight.inductor.structured import INT, Branch, ListOf, Literal, Operand, Repeat, Statement, Stop, TensorOf, Var
from rushlight.jit.ir.graph import Block, Node, Value


class ControlFlow(Tensors):
    """Translates branches and loops."""

    def _block(self, block: Block, body: list[Statement]) -> None:
        """Translate the nodes of a block."""
        raise NotImplementedError

    def _if(self, node: Node, body: list[Statement]) -> None:
        condition = self._operand(node.input(), body)
        if isinstance(condition, Literal):
            self._taken(node, node.blocks[0] if condition.value else node.blocks[1], body)
            return
        self._flush(body)
        lengths = dict(self.lengths)
        parts, ends = [], []
        for block in node.blocks:
            part: list[Statement] = []
            self.lengths = dict(lengths)
            if any(each.kind == "prim::RaiseException" for each in block.nodes):
                part.append(Stop())
                results: list[Operand | None] = [None] * len(node.outputs)
            else:
                self._block(block, part)
                results = [self._operand(value, part) for value in block.outputs]
                self._flush(part)
            parts.append((part, results))
            ends.append(self.lengths)
        self.lengths = {var: ends[0][var] if ends[0].get(var) == ends[1].get(var) else None for var in ends[0]}
        results = []
        for index, value in enumerate(node.outputs):
            options = [part[1][index] for part in parts if part[1][index] is not None]
            results.append((self._joined(value, options), parts[0][1][index], parts[1][1][index]))
        body.append(Branch(condition, parts[0][0], parts[1][0], results))

    def _joined(self, value: Value, options: Sequence[Operand]) -> Var:
        """The variable for a result of an if."""
        kinds = {option.kind for option in options}
        if len(kinds) != 1:
            raise Unsupported("branches whose results differ in type or size")
        kind = kinds.pop()
        prefix = "list" if isinstance(kind, ListOf) else "t" if isinstance(kind, TensorOf) else "n"
        made = self.values[value] = self._var(prefix, kind)
        return made

    def _taken(self, node: Node, block: Block, body: list[Statement]) -> None:
        """The one branch that is ever taken."""
        self._block(block, body)
        for value, inner in zip(node.outputs, block.outputs, strict=True):
            if self.piece is not None and self.piece.makes(inner):
                self._flush(body)
            self.values[value] = self._value(inner)

    def _loop(self, node: Node, body: list[Statement]) -> None:
        limit, condition = self._operand(node.input(0), body), self._operand(node.input(1), body)
        block = node.blocks[0]
        initial = [self._operand(value, body) for value in node.inputs[2:]]
        self._flush(body)
        counter = self._var("i", INT)
        self.values[block.inputs[0]] = counter
        carried = []
        for value, first in zip(block.inputs[1:], initial, strict=True):
            prefix = "list" if isinstance(first.kind, ListOf) else "t" if isinstance(first.kind, TensorOf) else "n"
            carried.append(self._var(prefix, first.kind))
            if isinstance(first.kind, ListOf):
                self.lengths[carried[-1]] = self.lengths[first] = None
            self.values[value] = carried[-1]
        before = dict(self.lengths)
        inner: list[Statement] = []
        self.depth += 1
        self._block(block, inner)
        again = self._operand(block.outputs[0], inner)
        following = [self._operand(value, inner) for value in block.outputs[1:]]
        self._flush(inner)
        self.depth -= 1
        self._lengths_after(before, limit if condition == again == Literal(True) else None)
        for var, after in zip(carried, following, strict=True):
            if var.kind != after.kind:
                raise Unsupported("a loop that changes the type or size of what it carries")
        body.append(Repeat(counter, limit, condition, inner, again, list(zip(carried, initial, following, strict=True))))
        for value, var in zip(node.outputs, carried, strict=True):
            self.values[value] = var

    def _lengths_after(self, before: dict[Var, int | None], limit: Operand | None) -> None:
        """How long lists are after a loop that goes round as often as `limit` says, if that is known."""
        rounds = limit.value if isinstance(limit, Literal) else None
        after = {}
        for var, length in self.lengths.items():
            start = before.get(var, 0)
            if length is None or start is None or (rounds is None and length != start):
                after[var] = None
            else:
                after[var] = start + (length - start) * max(rounds or 0, 0)
        self.lengths = after
