"""A jit graph, for arguments of known sizes, as a structured program.

In: an inlined graph without tuples inside, and arguments. Out: a StructuredProgram, and where its inputs come from: arguments,
or attributes of objects among them. Unsupported says what has no native form. Numbers and lists of them become C++, nodes on
tensors are collected into straight-line pieces, as long as no numbers, branches or loops come between.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.regions import Piece, Unsupported, example_of, function_of, make_region
from rushlight.compiler.scripted.scalars import LIST_OPERATORS, READS, SCALAR_OPERATORS
from rushlight.core.tensor import Tensor
from rushlight.inductor.codegen.structured import result_kind
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    INT,
    Branch,
    Compute,
    Element,
    Kind,
    ListOf,
    Literal,
    Operand,
    Read,
    Repeat,
    Run,
    Scalar,
    Statement,
    Stop,
    StructuredProgram,
    TensorOf,
    Var,
)
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types import kinds as types

_SCALARS = {types.INT: INT, types.FLOAT: FLOAT, types.BOOL: BOOL}
_MIXING = frozenset(f"aten::{name}" for name in ("add", "sub", "mul", "div", "rsub", "eq", "ne", "lt", "le", "gt", "ge"))
"""Operators on a tensor that may take a number which is known only when the program runs."""


@dataclass(frozen=True)
class Plain:
    """A value that is known now: None, a string, a list of constants, a size."""

    value: object


@dataclass(frozen=True)
class Source:
    """Where an input comes from: an argument, or an attribute below it."""

    argument: int
    path: tuple[str, ...]

    def read(self, arguments: Sequence[object]) -> object:
        """The value for a call's arguments."""
        value = arguments[self.argument]
        for name in self.path:
            value = value.slots[name]
        return value


@dataclass(frozen=True, eq=False)
class Fixed:
    """An input that is a constant of the graph."""

    tensor: Tensor

    def read(self, arguments: Sequence[object]) -> Tensor:
        """The constant."""
        return self.tensor


@dataclass
class Translation:
    """A program, the sources of its inputs, and how its outputs make the graph's: indices, or tuples of them."""

    program: StructuredProgram
    sources: list[Source | Fixed]
    structure: list


def kind_of(value: object) -> Kind | None:
    """The type of an argument; None for what programs do not take."""
    if isinstance(value, Tensor):
        impl = value._impl
        return TensorOf(impl.dtype, tuple(impl.sizes)) if impl.device.type == "cpu" else None
    if isinstance(value, bool | int | float):
        return BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
    if isinstance(value, list) and value:
        kinds = {kind_of(item) for item in value}
        element = kinds.pop()
        return ListOf(element) if not kinds and isinstance(element, Scalar | TensorOf) else None
    return None


def translate(graph: Graph, arguments: Sequence[object]) -> Translation:
    """The program of a graph for arguments like these."""
    return _Translator(graph, arguments).run()


class _Translator:
    def __init__(self, graph: Graph, arguments: Sequence[object]):
        self.graph = graph
        self.arguments = arguments
        self.values: dict[Value, object] = {}
        self.inputs: dict[Source, Var] = {}
        self.regions: list = []
        self.numbers = itertools.count()
        self.piece: Piece | None = None
        self.lengths: dict[Var, int | None] = {}
        self.depth = 0

    def run(self) -> Translation:
        """Translate the whole graph."""
        for index, value in enumerate(self.graph.inputs):
            self.values[value] = Source(index, ())
        body: list[Statement] = []
        self._block(self.graph.block, body)
        outputs: list[Operand] = []
        structure = [self._output(value, outputs, body) for value in self.graph.outputs]
        self._flush(body)
        program = StructuredProgram(list(self.inputs.values()), outputs, body, self.regions)
        return Translation(program, list(self.inputs), structure)

    # Values

    def _var(self, prefix: str, kind: Kind) -> Var:
        return Var(f"{prefix}{next(self.numbers)}", kind)

    def _input(self, source: Source | Fixed) -> object:
        """An argument or attribute as an operand."""
        found = self.inputs.get(source)
        if found is None:
            value = source.read(self.arguments)
            if value is None or isinstance(value, str):
                raise Unsupported(f"an argument of type {type(value).__name__}")
            kind = kind_of(value)
            if kind is None:
                raise Unsupported(f"an argument of type {type(value).__name__}")
            found = self.inputs[source] = self._var("in", kind)
            if isinstance(kind, ListOf):
                self.lengths[found] = None
        return found

    def _value(self, value: Value) -> object:
        """What a value is: an operand, or Plain. A value of the open piece gives None."""
        if value.is_constant:
            constant = value.constant()
            if isinstance(constant, bool | int | float):
                return Literal(constant)
            if isinstance(constant, Tensor):
                if value not in self.values:
                    self.values[value] = self._input(Fixed(constant.contiguous()))
                return self.values[value]
            return Plain(constant)
        found = self.values.get(value)
        if isinstance(found, Source):
            if isinstance(found.read(self.arguments), ScriptObject):
                return found
            found = self.values[value] = self._input(found)
        return found

    def _operand(self, value: Value, body: list[Statement]) -> Operand:
        """An operand; the open piece is closed where it makes the value."""
        if self.piece is not None and self.piece.makes(value):
            self._flush(body)
        found = self._value(value)
        if isinstance(found, Plain) and isinstance(found.value, bool | int | float):
            return Literal(found.value)
        if not isinstance(found, Var | Literal):
            raise Unsupported(f"{value.node.kind} where a number or tensor is needed")
        return found

    def _output(self, value: Value, outputs: list[Operand], body: list[Statement]) -> object:
        if value.node.kind == "prim::TupleConstruct":
            return tuple(self._output(each, outputs, body) for each in value.node.inputs)
        if value.is_none:
            return None
        outputs.append(self._operand(value, body))
        return len(outputs) - 1

    # Blocks

    def _block(self, block: Block, body: list[Statement]) -> None:
        for node in block.nodes:
            self._node(node, body)
        for value in block.outputs:
            if self.piece is not None and self.piece.makes(value):
                self._flush(body)

    def _node(self, node: Node, body: list[Statement]) -> None:
        kind = node.kind
        if kind == "prim::Constant" or kind == "prim::TupleConstruct":
            return
        special = _SPECIAL.get(kind)
        if special is not None:
            special(self, node, body)
        elif kind in ("aten::Int", "aten::Float", "aten::Bool", *READS) and _is_tensor(node.input()):
            self._read(node, body)
        elif any(_is_tensor(value) or _is_tensor_list(value) for value in (*node.inputs, *node.outputs)):
            self._tensor_node(node, body)
        elif any(isinstance(value.type, types.ListType) for value in (*node.inputs, *node.outputs)):
            self._list_node(node, body)
        else:
            self._scalar_node(node, body)

    # Numbers

    def _scalar_node(self, node: Node, body: list[Statement]) -> None:
        known = [self._value(value) for value in node.inputs]
        if known and all(isinstance(each, Plain | Literal) for each in known) and len(node.outputs) == 1:
            result = self._fold(node, known)
            if result is not None:
                self.values[node.output] = result
                return
        op = SCALAR_OPERATORS.get(node.kind)
        if op is None or len(node.outputs) != 1 or node.output.type not in _SCALARS:
            raise Unsupported(f"{node.kind} on numbers")
        operands = [self._operand(value, body) for value in node.inputs]
        op = op(operands) if callable(op) else op
        if op is None:
            raise Unsupported(f"{node.kind} on numbers of these types")
        target = self._var("n", _SCALARS[node.output.type])
        if result_kind(op, operands) != target.kind:
            raise Unsupported(f"{node.kind} with a result of another type")
        body.append(Compute(target, op, operands))
        self.values[node.output] = target

    def _fold(self, node: Node, known: Sequence[object]) -> Plain | Literal | None:
        """The result of an operator on constants; None where it fails, which is the program's business."""
        operator = operator_of(node)
        if operator is None or not operator.is_pure:
            return None
        try:
            result = operator.function(*[each.value for each in known])
        except Exception:  # whatever an operator raises, it raises when the program runs
            return None
        return Literal(result) if isinstance(result, bool | int | float) else Plain(result)

    def _read(self, node: Node, body: list[Statement]) -> None:
        """The element of a tensor as a number."""
        source = self._operand(node.input(), body)
        kind = _SCALARS.get(node.output.type)
        if not isinstance(source, Var) or source.kind.numel != 1 or kind is None:
            raise Unsupported(f"{node.kind} of a tensor of several elements")
        if source.kind.dtype.is_complex or (kind == INT and source.kind.dtype.is_floating_point):
            raise Unsupported(f"{node.kind} of a tensor of dtype {source.kind.dtype}")
        target = self._var("n", kind)
        body.append(Read(target, source))
        self.values[node.output] = target

    # Lists

    def _list_construct(self, node: Node, body: list[Statement]) -> None:
        element = node.output.type.element
        is_mutated = any(use.user.kind in _MUTATING for use in node.output.uses)
        if not is_mutated and (element not in _SCALARS or not any(self._is_unknown(value) for value in node.inputs)):
            self._constant_list(node, body)
            return
        operands = [self._operand(value, body) for value in node.inputs]
        kind = _SCALARS.get(element) or self._appended_kind(node.output, operands)
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
            if needs_list and node.output.type.element in _SCALARS:
                target = self._var("list", ListOf(_SCALARS[node.output.type.element]))
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
        mutates = node.kind in _MUTATING
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
        if isinstance(kind, types.ListType) and kind.element in _SCALARS:
            return ListOf(_SCALARS[kind.element])
        if kind not in _SCALARS:
            raise Unsupported(f"{node.kind} with a result of type {kind}")
        return _SCALARS[kind]

    def _count(self, values: Operand, op: str) -> None:
        """Keep track of how long a list is."""
        if values in self.lengths and self.lengths[values] is not None:
            if op in ("pop", "clear"):
                self.lengths[values] = None
            elif op == "append":
                self.lengths[values] += 1

    # Tensors

    def _tensor_node(self, node: Node, body: list[Statement]) -> None:
        if any(_is_tensor_list(value) for value in node.inputs) and self._on_tensor_list(node, body):
            return
        if node.kind == "aten::select" and self._select(node, body):
            return
        if not any(_is_tensor(value) or _is_tensor_list(value) for value in node.outputs):
            self._question(node, body)
            return
        operator = operator_of(node) if node.kind.startswith("aten::") else None
        if operator is not None and not operator.is_pure:
            raise Unsupported(f"{node.kind}, which writes or draws random numbers")
        self._into_piece(node, body)

    def _into_piece(self, node: Node, body: list[Statement]) -> None:
        """Add a node to the open piece."""
        piece = self.piece = self.piece or Piece()
        for value in node.inputs:
            if piece.makes(value) or value in piece.inputs or value in piece.plain:
                continue
            found = self._value(value)
            if isinstance(found, Plain | Literal):
                piece.plain[value] = found.value
            elif isinstance(found, Var) and isinstance(found.kind, TensorOf):
                piece.inputs[value] = found
            elif isinstance(found, Var) and isinstance(found.kind, Scalar):
                self._check_mixing(node, found)
                piece.inputs[value] = found
            else:
                raise Unsupported(f"{node.kind} of a value that only the program knows")
        piece.nodes.append(node)

    def _check_mixing(self, node: Node, number: Var) -> None:
        if node.kind not in _MIXING or number.kind == BOOL:
            raise Unsupported(f"{node.kind} with a number that only the program knows")

    def _question(self, node: Node, body: list[Statement]) -> None:
        """What only depends on a tensor's size and dtype is known now."""
        if node.kind == "aten::size" and node.input_count == 2 and isinstance(self._value(node.input(1)), Var):
            self._size_of_some_dimension(node, body)
            return
        arguments = []
        for value in node.inputs:
            if self.piece is not None and self.piece.makes(value):
                self._flush(body)
            found = self._value(value)
            if isinstance(found, Var) and isinstance(found.kind, TensorOf):
                arguments.append(example_of(found))
            elif isinstance(found, Plain | Literal):
                arguments.append(found.value)
            else:
                raise Unsupported(f"{node.kind} of a value that only the program knows")
        if node.kind not in _QUESTIONS:
            raise Unsupported(f"{node.kind} with a result that is no tensor")
        result = function_of(node)(*arguments)
        self.values[node.output] = Literal(result) if isinstance(result, bool | int | float) else Plain(result)

    def _size_of_some_dimension(self, node: Node, body: list[Statement]) -> None:
        sizes = self._var("list", ListOf(INT))
        target = self._var("n", INT)
        body.append(Compute(sizes, "list", [Literal(size) for size in self._operand(node.input(), body).kind.size]))
        body.append(Compute(target, "getitem", [sizes, self._value(node.input(1))]))
        self.values[node.output] = target

    def _select(self, node: Node, body: list[Statement]) -> bool:
        """A row of a tensor whose number only the program knows, along the first dimension."""
        index = self._value(node.input(2))
        if not isinstance(index, Var):
            return False
        source = self._operand(node.input(), body)
        dim = self._value(node.input(1))
        if not isinstance(dim, Literal) or dim.value not in (0, -len(source.kind.size)):
            raise Unsupported("a row along another than the first dimension")
        target = self._var("t", TensorOf(source.kind.dtype, source.kind.size[1:]))
        body.append(Element(target, source, index))
        self.values[node.output] = target
        return True

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

    # Pieces

    def _flush(self, body: list[Statement]) -> None:
        """Close the open piece: it runs here."""
        if self.piece is not None:
            self._flush_as(body, None)

    def _flush_as(self, body: list[Statement], renamed: dict[Value, Value] | None) -> None:
        piece, self.piece = self.piece, None
        inside = set(piece.nodes)
        made = [value for node in piece.nodes for value in node.outputs]
        needed = list(renamed) if renamed else [
            value for value in made
            if not _is_tensor_list(value) and any(use.user not in inside for use in value.uses)
        ]  # fmt: skip
        if any(_is_tensor_list(value) and any(use.user not in inside for use in value.uses) for value in made) and not renamed:
            raise Unsupported("a list of tensors that leaves straight-line code")
        if not needed:
            return
        fixed = set(self.inputs.values()) if self.depth else set()
        region, inputs, kinds = make_region(piece, needed, fixed)
        outputs = [self._var("t", kind) for kind in kinds]
        body.append(Run(len(self.regions), inputs, outputs))
        self.regions.append(region)
        for value, var in zip(needed, outputs, strict=True):
            self.values[renamed[value] if renamed else value] = var

    # Control flow

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
            if isinstance(first.kind, ListOf):
                raise Unsupported("a list that a loop carries")
            prefix = "t" if isinstance(first.kind, TensorOf) else "n"
            carried.append(self._var(prefix, first.kind))
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

    # Other nodes

    def _attribute(self, node: Node, body: list[Statement]) -> None:
        source = self._value(node.input())
        if not isinstance(source, Source):
            raise Unsupported("an attribute of an object that the program makes")
        self.values[node.output] = Source(source.argument, (*source.path, node["name"]))

    def _stop(self, node: Node, body: list[Statement]) -> None:
        self._flush(body)
        body.append(Stop())

    def _same(self, node: Node, body: list[Statement]) -> None:
        self.values[node.output] = self._operand(node.input(), body)

    def _new_list(self, node: Node, body: list[Statement]) -> None:
        if _is_tensor_list(node.output) and not node.inputs:
            self.values[node.output] = EmptyTensorList(self, body, self._var("list", BOOL).name)
            return
        self._list_construct(node, body)

    def _uninitialized(self, node: Node, body: list[Statement]) -> None:
        kind = _SCALARS.get(node.output.type)
        if kind is None:
            raise Unsupported("a value that is not initialized")
        self.values[node.output] = Literal(False if kind == BOOL else 0 if kind == INT else 0.0)


@dataclass
class EmptyTensorList:
    """A list of tensors whose size is not known yet. It is made where it stood once the first tensor is put into it."""

    translator: _Translator
    body: list[Statement]
    name: str

    def settle(self, kind: TensorOf) -> Var:
        """The list, now that its elements are known."""
        made = Var(self.name, ListOf(kind))
        self.body.insert(0, Compute(made, "list", []))
        return made


def _is_tensor(value: Value) -> bool:
    return isinstance(value.type, types.TensorType)


def _is_tensor_list(value: Value) -> bool:
    kind = _without_none(value.type)
    return isinstance(kind, types.ListType) and isinstance(_without_none(kind.element), types.TensorType)


def _without_none(kind: types.Type) -> types.Type:
    return kind.element if isinstance(kind, types.OptionalType) else kind


_MUTATING = frozenset(
    f"aten::{name}" for name in ("append", "_set_item", "pop", "clear", "extend", "insert", "remove", "reverse", "sort")
)
_QUESTIONS = frozenset(
    "aten::size aten::dim aten::numel aten::len aten::stride aten::is_contiguous aten::is_floating_point aten::is_complex "
    "prim::dtype prim::device prim::layout prim::shape prim::is_cpu prim::is_cuda prim::is_meta prim::is_sparse "
    "aten::element_size prim::itemsize prim::nbytes".split()
)
_SPECIAL = {
    "prim::If": _Translator._if, "prim::Loop": _Translator._loop, "prim::GetAttr": _Translator._attribute,
    "prim::RaiseException": _Translator._stop, "prim::unchecked_cast": _Translator._same,
    "prim::ListConstruct": _Translator._new_list, "prim::Uninitialized": _Translator._uninitialized,
}  # fmt: skip
