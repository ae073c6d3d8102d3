"""Translate the jit IR's lists for structured programs: lists of numbers, of tensors of one size, and of such lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.scalars import CHAINED, LIST_OPERATORS, MUTATING
from rushlight.compiler.scripted.values import (
    SCALARS,
    Elements,
    Plain,
    Values,
    is_tensor_list,
    kind_of_type,
    without_none,
)
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    INT,
    Compute,
    Kind,
    ListOf,
    Literal,
    Null,
    Operand,
    Statement,
    TensorOf,
    Var,
)
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.lookup import writes
from rushlight.jit.types import kinds as types

_CONTROL = frozenset(("prim::Loop", "prim::If", "prim::Return"))
_RETURNS_ELEMENT = frozenset(("getitem", "pop"))
_GROWING = frozenset(("append", "insert"))


@dataclass(eq=False)
class EmptyList:
    """A list of tensors whose element size is not known yet. The first tensor put into it settles the size; the statement that
    makes

    the list is then inserted where the list was created.
    """

    body: list[Statement]
    name: str
    value: Value
    loop: tuple

    def settle(self, element: Kind) -> Var:
        """Make the list, now that its element type is known."""
        made = Var(self.name, ListOf(element))
        self.body.insert(0, Compute(made, "list", []))
        return made


class Lists(Values):
    """Translates nodes on lists, and tracks how long lists are."""

    def _value(self, value: Value) -> object:
        """Return the value as an operand. An empty list whose type was settled meanwhile is its variable."""
        found = super()._value(value)
        if isinstance(found, EmptyList) and isinstance(self.values.get(found.value), Var):
            found = self.values[value] = self.values[found.value]
        return found

    def _new_list(self, node: Node, body: list[Statement]) -> None:
        """Translate `prim::ListConstruct`: a list of the program if it is used as one, else a static argument of tensor
        operators."""
        value = node.output
        if is_tensor_list(value) and not node.inputs:
            known = self.plan.kinds.get(value)
            if known is None:
                self.values[value] = EmptyList(body, self._var("list", BOOL).name, value, self.loop)
                return
            self.values[value] = self._make_list([], known, body)
            return
        is_list = needs_list(value) or isinstance(value.type.element, types.ListType)
        if node.output.type.element in SCALARS and not is_list:
            found = [self._value(each) for each in node.inputs]
            if all(isinstance(each, Literal) for each in found):
                self.values[value] = Plain([each.value for each in found])
            else:
                self.values[value] = Elements([self._operand(each, body) for each in node.inputs])
            return
        if not is_list:
            self._plain_list(node, body)
            return
        operands = [self._operand(each, body) for each in node.inputs]
        kind = kind_of_type(value.type) or self._tensor_list_kind(value, operands)
        for item in operands:
            self._check_stored(item)
        self.values[value] = self._make_list(operands, kind, body)

    def _tensor_list_kind(self, value: Value, operands: Sequence[Operand]) -> ListOf:
        """Return the type of a list of tensors; Unsupported unless all have one dtype and size."""
        kinds = {TensorOf(each.kind.dtype, each.kind.size) for each in operands if isinstance(each.kind, TensorOf)}
        if len(kinds) != 1:
            raise Unsupported(f"a list of elements of type {value.type.element}")
        return ListOf(kinds.pop())

    def _plain_list(self, node: Node, body: list[Statement]) -> None:
        known = [None if self._is_open(each) else self._value(each) for each in node.inputs]
        is_of_tensors = isinstance(node.output.type.element, types.TensorType)
        if all(isinstance(each, Plain | Literal) for each in known) and not is_of_tensors:
            self.values[node.output] = Plain([each.value for each in known])
            return
        self._tensor_node(node, body)

    def _is_open(self, value: Value) -> bool:
        return self.piece is not None and self.piece.makes(value)

    def _check_stored(self, item: Operand) -> None:
        """Check that a tensor which a list holds is not written to. Lists hold copies, so they would miss the write."""
        makers = self.makers.get(item, frozenset()) if isinstance(item, Var) else frozenset()
        if any(maker in self.plan.written and self.loops.get(maker) != self.loop for maker in makers):
            raise Unsupported("a list of tensors that are written to")
        self.stored.update(makers)

    # Translate operators on lists

    def _list_node(self, node: Node, body: list[Statement]) -> None:
        """Translate an operator on lists."""
        op = LIST_OPERATORS.get(node.kind)
        if op is None:
            raise Unsupported(f"{node.kind} on a list")
        first = self._value(node.input())
        if isinstance(first, Elements | Plain) and self._compute_on_known_elements(node, op, first, body):
            return
        if op == "len" and self.lengths.get(first) is not None and not self.plan.aliases.has_writers(node.input()):
            self.values[node.output] = Literal(self.lengths[first])
            return
        if op in ("least_of", "sum_of", "most_of") and node.input_count == 2:
            raise Unsupported(f"{node.kind} of two lists")
        operands = self._list_operands(node, op, body)
        self.changes_lists = self.changes_lists or node.kind in MUTATING
        self._check_elements(node, op, operands)
        self._add_list_node(node, op, operands, body)

    def _list_operands(self, node: Node, op: str, body: list[Statement]) -> list[Operand]:
        """Return the operands of an operator on lists."""
        if op in ("concat", "extend"):
            self._settle_like(node)
        operands = []
        for value in node.inputs:
            if value.is_none and op == "slice":
                operands.append(Literal(0 if len(operands) == 1 else (1 << 63) - 1))
            else:
                operands.append(self._operand(value, body))
        if op == "repeat" and not isinstance(operands[0].kind, ListOf):
            operands.reverse()
        if op == "slice" and not (isinstance(operands[3], Literal) and operands[3].value > 0):
            raise Unsupported("a slice of a list by a step that is not known to be above 0")
        if op == "sort" and len(operands) == 1:
            operands.append(Literal(False))
        return operands

    def _settle_like(self, node: Node) -> None:
        """Settle the type of an empty list that meets another list: it has the same elements."""
        one, other = (self._value(value) for value in node.inputs[:2])
        for empty, full, value in ((one, other, node.input(0)), (other, one, node.input(1))):
            if isinstance(empty, EmptyList) and isinstance(full, Var) and isinstance(full.kind, ListOf):
                self._settle(value, empty, full.kind.element)

    def _settle(self, value: Value, empty: EmptyList, element: Kind) -> Var:
        """Settle the element type of an empty list, and make the list."""
        made = self.values[empty.value] = self.values[value] = empty.settle(element)
        self.lengths.setdefault(made, 0)
        self.settled[made] = empty.loop
        return made

    def _check_elements(self, node: Node, op: str, operands: Sequence[Operand]) -> None:
        """Check that the elements that an operator puts into a list have the type of the list."""
        values = operands[0]
        if isinstance(values, Null) or not isinstance(values.kind, ListOf):
            raise Unsupported(f"{node.kind} on what is no list of the program")
        element = values.kind.element
        numbers = ("sort", "remove", "contains", "index", "count", "sum_of", "least_of", "most_of", "equal")
        if op in numbers and element not in (INT, FLOAT) and not (op in ("contains", "equal") and element == BOOL):
            raise Unsupported(f"{node.kind} on a list of {element}")
        items = {"append": operands[1:], "insert": operands[2:], "setitem": operands[2:]}.get(op, ())
        for item in items:
            same = isinstance(item.kind, TensorOf) and TensorOf(item.kind.dtype, item.kind.size) == element
            if item.kind != element and not same:
                raise Unsupported("a list of elements of several types or sizes")
            self._check_stored(item)
        others = operands[1:2] if op in ("concat", "extend", "equal") else ()
        if any(other.kind != values.kind for other in others):
            raise Unsupported("two lists of different types")

    def _add_list_node(self, node: Node, op: str, operands: list[Operand], body: list[Statement]) -> None:
        """Add the statements of an operator on lists."""
        values = operands[0]
        if op == "sorted":
            target = self._new_variable(values.kind)
            body += [Compute(target, "duplicate", [values]), Compute(None, "sort", [target, Literal(False)])]
            self.values[node.output] = target
            self.lengths[target] = self.lengths.get(values)
            return
        target = None
        if node.kind not in MUTATING or op == "pop":
            target = self._new_variable(self._list_result(node, op, values.kind))
        if op == "getitem" and isinstance(values.kind.element, TensorOf) and not self.plan.aliases.has_writers(node.input()):
            op = "peek"
        body.append(Compute(target, op, operands))
        if target is not None:
            if isinstance(target.kind, TensorOf):
                self._record_maker(target, ("element", node.output))
            self.values[node.output] = target
        elif node.outputs:
            self.values[node.output] = values
        self._count(values, target, op, operands)

    def _list_result(self, node: Node, op: str, kind: ListOf) -> Kind:
        """Return the type of the result of an operator on lists."""
        if op in _RETURNS_ELEMENT:
            return kind.element
        if op in ("concat", "repeat", "slice", "duplicate"):
            return kind
        found = kind_of_type(node.output.type)
        if found is None:
            raise Unsupported(f"{node.kind} with a result of type {node.output.type}")
        return found

    def _count(self, values: Operand, target: Var | None, op: str, operands: Sequence[Operand]) -> None:
        """Track how long lists are."""
        before = self.lengths.get(values)
        if isinstance(target, Var) and isinstance(target.kind, ListOf):
            other = self.lengths.get(operands[1]) if op == "concat" else 0
            known = before is not None and other is not None and op in ("concat", "duplicate")
            self.lengths[target] = before + other if known else None
        if before is None or op not in ("pop", "delete", "remove", "clear", "extend", *_GROWING):
            return
        more = 1 if op in _GROWING else -1 if op in ("pop", "delete", "remove") else None
        if op == "extend":
            more = self.lengths.get(operands[1])
        self.lengths[values] = 0 if op == "clear" else None if more is None else before + more

    def _compute_on_known_elements(self, node: Node, op: str, known: Elements | Plain, body: list[Statement]) -> bool:
        """Translate an operator on a list whose elements are all operands; `min` of three numbers, say, needs no list."""
        items = known.operands if isinstance(known, Elements) else known.value
        if not isinstance(items, list) or not items or isinstance(items[0], str):
            return False
        operands = items if isinstance(known, Elements) else [Literal(item) for item in items]
        if op == "len":
            self.values[node.output] = Literal(len(operands))
            return True
        if op == "getitem":
            index = self._value(node.input(1))
            if isinstance(index, Literal) and -len(operands) <= index.value < len(operands):
                self.values[node.output] = operands[index.value]
                return True
        if op not in CHAINED or operands[0].kind not in (INT, FLOAT) or len(operands) > 32:
            return False
        if op == "contains":
            item = self._operand(node.input(1), body)
            operands = [self._compute("eq", [each, item], BOOL, body) for each in operands]
        found = operands[0]
        for each in operands[1:]:
            found = self._compute(CHAINED[op], [found, each], found.kind, body)
        self.values[node.output] = found
        return True

    def _compute(self, op: str, operands: list[Operand], kind: Kind, body: list[Statement]) -> Var:
        """Add a statement that computes an operation, and return the variable of the result."""
        target = self._new_variable(kind)
        body.append(Compute(target, op, operands))
        return target

    def _unpack_list(self, node: Node, body: list[Statement]) -> None:
        """Translate `prim::ListUnpack` of a list of the program; the program stops if the list has another length."""
        found = None if self._is_open(node.input()) else self._value(node.input())
        if isinstance(found, Elements | Plain):
            items = found.operands if isinstance(found, Elements) else [Literal(item) for item in found.value]
            if len(items) != len(node.outputs):
                raise Unsupported("a list of another length than is unpacked")
            self.values.update(zip(node.outputs, items, strict=True))
            return
        if not isinstance(found, Var):
            self._tensor_node(node, body)
            return
        length = self._compute("len", [found], INT, body)
        body.append(Compute(None, "check", [self._compute("eq", [length, Literal(len(node.outputs))], BOOL, body)]))
        for index, value in enumerate(node.outputs):
            self.values[value] = self._compute("getitem", [found, Literal(index)], found.kind.element, body)

    # Translate lists of tensors

    def _translate_tensor_list(self, node: Node, body: list[Statement]) -> bool:
        """Translate operators on lists of tensors that the program makes; return False for lists whose length is known now."""
        found = None if self._is_open(node.input()) else self._value(node.input())
        if isinstance(found, EmptyList) and node.kind == "aten::len":
            raise Unsupported("the length of a list that begins empty")
        if isinstance(found, EmptyList) and node.kind in ("aten::append", "aten::insert"):
            item = self._operand(node.inputs[-1], body)
            if not isinstance(item.kind, TensorOf):
                raise Unsupported("a list of what is no tensor")
            found = self._settle(node.input(), found, TensorOf(item.kind.dtype, item.kind.size))
        lists = [self._value(value) for value in node.inputs if is_tensor_list(value) and not self._is_open(value)]
        if not any(isinstance(each, Var | Null) for each in lists):
            return False
        if node.kind in LIST_OPERATORS and is_tensor_list(node.input()):
            self._list_node(node, body)
            return True
        self._join_later(node, found, body)
        return True

    def _join_later(self, node: Node, values: object, body: list[Statement]) -> None:
        """Translate `stack` or `cat` of a list: after the program if its length is unknown, else as one tensor."""
        if node.kind not in ("aten::stack", "aten::cat") or not isinstance(values, Var):
            raise Unsupported(f"{node.kind} of a list of tensors that the program makes")
        count = self.lengths.get(values)
        if not count:
            if _is_only_given(node):
                raise JoinedLater
            self.plan.fix(self.length_origins.get(values, ()))
            raise Unsupported(f"{node.kind} of a list of tensors whose length only the program knows")
        self._flush(body)
        self._stack_list(node, values, count, body)

    def _stack_list(self, node: Node, values: Var, count: int, body: list[Statement]) -> None:
        """Translate `stack` or `cat` of a list of `count` tensors: they lie in memory one after the other, as one tensor."""
        raise NotImplementedError


class JoinedLater(Exception):
    """Tensors of a list are stacked or concatenated only for a result of the graph: the caller does it after the program."""


def _is_only_given(node: Node) -> bool:
    """Return whether a node's output is only a result of the graph, or part of one, and nothing later changes the node's
    input."""
    block = node.block
    if block.owner is not None or not node.input(1).is_constant:
        return False
    users = [use.user for use in node.output.uses]
    users += [use.user for user in users if user.kind == "prim::TupleConstruct" for use in user.output.uses]
    nodes = list(block.nodes)
    changed = any(node.input(0) in writes(each) for each in nodes[nodes.index(node) :])
    return not changed and all(user.kind in ("prim::Return", "prim::TupleConstruct") for user in users)


def needs_list(value: Value) -> bool:
    """Return whether a list of known length has to exist in the program: a user needs one, or a user is in another block, where

    another piece runs.
    """
    inside = all(use.user.block is value.node.block for use in value.uses)
    return any(_needs_list(use.user) for use in value.uses) or (is_tensor_list(value) and not inside)


def _needs_list(user: Node) -> bool:
    takes_list = user.inputs and isinstance(without_none(user.input().type), types.ListType)
    op = LIST_OPERATORS.get(user.kind) if takes_list else None
    if op == "getitem":
        return not user.input(1).is_constant
    if op == "len":
        return is_tensor_list(user.input())
    if op in CHAINED and user.input_count == (2 if op == "contains" else 1):
        return False
    return op is not None or user.kind in _CONTROL or (user.kind == "prim::ListConstruct" and not is_tensor_list(user.output))
