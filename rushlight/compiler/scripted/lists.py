"""Lists of the jit's IR in structured programs: of numbers, and of tensors of one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.regions import Piece, Unsupported
from rushlight.compiler.scripted.scalars import LIST_OPERATORS
from rushlight.compiler.scripted.values import MUTATING, SCALARS, Literal, Plain, Values, Var, is_tensor_list
from rushlight.inductor.structured import BOOL, Compute, Kind, ListOf, Operand, Statement, TensorOf
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.types import kinds as types


@dataclass
class EmptyTensorList:
    """A list of tensors whose size is not known yet. It is made where it stood once the first tensor is put into it."""

    translator: Values
    body: list[Statement]
    name: str

    def settle(self, kind: TensorOf) -> Var:
        """The list, now that its elements are known."""
        made = Var(self.name, ListOf(kind))
        self.body.insert(0, Compute(made, "list", []))
        return made


class Lists(Values):
    """Translates nodes on lists, and keeps track of how long lists are."""

    def _new_list(self, node: Node, body: list[Statement]) -> None:
        if is_tensor_list(node.output) and not node.inputs:
            self.values[node.output] = EmptyTensorList(self, body, self._var("list", BOOL).name)
            return
        self._list_construct(node, body)

    def _list_construct(self, node: Node, body: list[Statement]) -> None:
        element = node.output.type.element
        is_mutated = any(use.user.kind in MUTATING for use in node.output.uses)
        if not is_mutated and (element not in SCALARS or not any(self._is_unknown(value) for value in node.inputs)):
            self._constant_list(node, body)
            return
        operands = [self._operand(value, body) for value in node.inputs]
        kind = SCALARS.get(element) or self._appended_kind(node.output, operands)
        target = self._var("list", ListOf(kind))
        body.append(Compute(target, "list", operands))
        self.values[node.output] = target
        self.lengths[target] = len(operands) if self.depth == 0 else None

    def _is_unknown(self, value: Value) -> bool:
        return isinstance(self._value(value), Var)

    def _constant_list(self, node: Node, body: list[Statement]) -> None:
        known = [self._value(value) for value in node.inputs]
        if all(isinstance(each, Plain | Literal) for each in known) and node.output.type.element != types.TENSOR:
            values = [each.value for each in known]
            needs_list = any(use.user.kind in LIST_OPERATORS or use.user is node.block.result for use in node.output.uses)
            if needs_list and node.output.type.element in SCALARS:
                target = self._var("list", ListOf(SCALARS[node.output.type.element]))
                body.append(Compute(target, "list", [Literal(value) for value in values]))
                self.values[node.output] = target
                self.lengths[target] = len(values) if self.depth == 0 else None
            else:
                self.values[node.output] = Plain(values)
            return
        self._tensor_node(node, body)

    def _appended_kind(self, value: Value, operands: Sequence[Operand]) -> TensorOf:
        """The size of the tensors that a list holds: the first one's that is put into it. It is met when that is translated."""
        if operands:
            return operands[0].kind
        raise Unsupported("a list of tensors that begins empty")

    def _list_node(self, node: Node, body: list[Statement]) -> None:
        op = LIST_OPERATORS.get(node.kind)
        if op is None:
            raise Unsupported(f"{node.kind} on a list")
        operands = [self._operand(value, body) for value in node.inputs]
        if op == "repeat" and not isinstance(operands[0].kind, ListOf):
            operands.reverse()
        if op == "pop" and isinstance(operands[0].kind.element, TensorOf):
            raise Unsupported("pop from a list of tensors")
        mutates = node.kind in MUTATING
        self.changes_lists = self.changes_lists or mutates
        target = None
        if not mutates or op == "pop":
            kind = self._list_result(node)
            target = self._var("list" if isinstance(kind, ListOf) else "n", kind)
        body.append(Compute(target, op, operands))
        if target is not None:
            self.values[node.output] = target
        elif node.outputs:
            self.values[node.output] = operands[0]
        self._count(operands[0], op)

    def _list_result(self, node: Node) -> Kind:
        kind = node.output.type
        if isinstance(kind, types.ListType) and kind.element in SCALARS:
            return ListOf(SCALARS[kind.element])
        if kind not in SCALARS:
            raise Unsupported(f"{node.kind} with a result of type {kind}")
        return SCALARS[kind]

    def _count(self, values: Operand, op: str) -> None:
        """Keep track of how long a list is."""
        if values in self.lengths and self.lengths[values] is not None:
            if op in ("pop", "clear"):
                self.lengths[values] = None
            elif op == "append":
                self.lengths[values] += 1

    def _on_tensor_list(self, node: Node, body: list[Statement]) -> bool:
        """Operators on lists of tensors that the program makes; False for lists that are known in number."""
        values = self._value(node.input())
        if node.kind == "aten::append":
            self._append_tensor(node, body)
            return True
        if not isinstance(values, Var):
            return False
        if node.kind == "aten::len":
            self._list_node(node, body)
            return True
        count = self.lengths.get(values)
        if count is None or node.kind not in ("aten::stack", "aten::cat"):
            raise Unsupported(f"{node.kind} of a list of tensors whose length only the program knows")
        self._flush(body)
        self._stacked(node, values, count, body)
        return True

    def _stacked(self, node: Node, values: Var, count: int, body: list[Statement]) -> None:
        """`stack` or `cat` of a list of as many tensors: they lie in memory one after the other, as one tensor."""
        element, dim = values.kind.element, self._value(node.input(1)).value
        is_cat = node.kind == "aten::cat"
        dim %= len(element.size) + (not is_cat)
        size = (count * element.size[0], *element.size[1:]) if is_cat and dim == 0 else (count, *element.size)
        whole = self._var("t", TensorOf(element.dtype, size))
        body.append(Compute(whole, "stacked", [values, Literal(count)]))
        if dim == 0:
            self.values[node.output] = whole
            return
        graph = node.graph
        source = graph.create("prim::Constant").output.set_type(types.TENSOR)  # stands for the whole
        numbers = [graph.create("prim::Constant").set("value", each).output.set_type(types.INT) for each in (0, dim, dim + 1)]
        last = graph.create("aten::movedim", [source, *numbers[:2]]).output
        self.piece = Piece([last.node], {source: whole}, {value: value.constant() for value in numbers})
        if is_cat:
            last = graph.create("aten::flatten", [last, *numbers[1:]]).output
            self.piece.nodes.append(last.node)
        self._flush_as(body, {last: node.output})

    def _append_tensor(self, node: Node, body: list[Statement]) -> None:
        item = self._operand(node.input(1), body)
        values = self.values.get(node.input())
        if isinstance(values, EmptyTensorList):
            values = values.settle(item.kind)
            self.values[node.input()] = values
            self.lengths.setdefault(values, 0)
        if not isinstance(values, Var) or values.kind.element != item.kind:
            raise Unsupported("a list of tensors of several sizes")
        body.append(Compute(None, "append", [values, item]))
        self.values[node.output] = values
        self._count(values, "append")
