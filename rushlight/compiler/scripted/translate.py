"""Translate a jit graph, for arguments of known sizes, to a structured program.


In: an inlined graph without tuples inside, and arguments. Out: a StructuredProgram, and the sources of its inputs: arguments,
or attributes of objects among them. Unsupported names what has no native form.

Numbers and lists of numbers become C++. Nodes on tensors are collected into straight-line pieces, until numbers, branches or
loops come between. A translation may find out at its end what it should have known at its beginning, for example which tensors
are written to. It then starts again, with the facts kept in a `Plan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.control_flow import ControlFlow
from rushlight.compiler.scripted.lists import JoinedLater
from rushlight.compiler.scripted.memory import is_view
from rushlight.compiler.scripted.plan import Plan, Retry, Source
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.scalars import READS, SCALAR_OPERATORS
from rushlight.compiler.scripted.values import (
    SCALARS,
    Fixed,
    Maybe,
    Plain,
    Undefined,
    is_tensor,
    is_tensor_list,
    without_none,
)
from rushlight.core.dtype import bfloat16, bool_, float16
from rushlight.inductor.codegen.cpp.structured_scalars import result_kind
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    INT,
    Compute,
    ListOf,
    Literal,
    Operand,
    Read,
    Statement,
    Stop,
    StructuredProgram,
    TensorOf,
    Var,
)
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.types import kinds as types

_MAX_ATTEMPTS = 64


@dataclass(frozen=True)
class Given:
    """An output that is an input, or the value of an attribute."""

    source: Source


@dataclass(frozen=True)
class Constant:
    """An output that is known now."""

    value: object


@dataclass(frozen=True)
class Optional:
    """An output that may be None: the outputs at these indices are a flag that says whether it is present, and its value."""

    present: int
    value: int


@dataclass(frozen=True)
class Joined:
    """An output that is `aten::stack` or `aten::cat` of a list of tensors along a dimension. `tensors` is the index of the
    list's

    output. Only a call knows the size.
    """

    operator: str
    tensors: int
    dim: int


@dataclass(frozen=True)
class Named:
    """An output that is a NamedTuple of other outputs."""

    type: types.TupleType
    parts: tuple


@dataclass
class Translation:
    """A program with the sources of its inputs, its guards, and the sources of the tensors that it writes to. `structure` says
    how

    its outputs form the graph's: an index, or a tuple of structures. `draws`: it draws random numbers.
    """

    program: StructuredProgram
    sources: list[Source | Fixed]
    guards: dict[Source, object]
    written: list[Source]
    structure: list
    draws: bool = False


def translate(
    graph: Graph, arguments: Sequence[object], threads: int | None = 1, state: frozenset[Source] = frozenset(),
    owns_lists: bool = True, written_later: frozenset[int] = frozenset(),
) -> Translation:  # fmt: skip
    """Translate a graph, which may change, for arguments like these; large pieces share their work among threads. `state` are

    attributes whose values may differ between calls; `owns_lists`: nobody else sees changes of lists among the arguments;
    `written_later` are the indices of results whose memory is written to after the graph.
    """
    plan = Plan(graph, state, owns_lists, written_later)
    for _ in range(_MAX_ATTEMPTS):
        try:
            return _Translator(graph, arguments, threads, plan).run()
        except Retry:
            continue
    raise Unsupported("a translation that does not come to an end")


class _Translator(ControlFlow):
    def run(self) -> Translation:
        """Translate the whole graph."""
        self.results: dict[Value, Value] = {}
        self.joins: set[Node] = set()
        for index, value in enumerate(self.graph.inputs):
            self.values[value] = Source(index, ())
        body: list[Statement] = []
        self._translate_block(self.graph.block, body)
        outputs: list[Operand] = []
        for place in self.plan.written_later:
            if self.plan.aliases.escapes(self.graph.outputs[place]):
                raise Unsupported("a result that is written to later, and may be memory from outside")
        structure = [self._add_output(value, outputs, body) for value in self.graph.outputs]
        self._flush(body)
        if self.draft:
            raise Unsupported("a value whose type is never found")
        if self.shares_lists and self.changes_lists:
            raise Unsupported("a list of an object, which may be written to")
        program = StructuredProgram(list(self.inputs.values()), outputs, body, self.regions, self.written, self.calls)
        changed = [source for var, _ in self.written for source, each in self.inputs.items() if each is var]
        return Translation(program, list(self.inputs), self.guards, changed, structure, self.draws)

    def _add_output(self, value: Value, outputs: list[Operand], body: list[Statement]) -> object:
        if value.node in self.joins:
            tensors = value.node.input(0)
            operand = self._operand(tensors, body)
            self._check_listed(tensors)
            return Joined(value.node.kind, self._output_index(operand, outputs), value.node.input(1).constant())
        if value.node.kind == "prim::TupleConstruct":
            parts = tuple(self._add_output(each, outputs, body) for each in value.node.inputs)
            return Named(value.type, parts) if value.type.name is not None else parts
        found = None if self._is_open(value) else self._value(value)
        if isinstance(found, Maybe):
            if found.value is None:
                raise Unsupported("an optional result of unknown type")
            return Optional(self._output_index(found.present, outputs), self._output_index(found.value, outputs))
        if isinstance(found, Plain) and not isinstance(found.value, list):
            return Constant(found.value)
        operand = self._operand(value, body)
        for source, var in self.inputs.items():
            if isinstance(source, Source) and isinstance(operand.kind, TensorOf) and operand is self.copies.get(var, var):
                return Given(source)
        if isinstance(operand.kind, ListOf) and isinstance(operand.kind.element, TensorOf):
            self._check_listed(value)
        if isinstance(operand.kind, TensorOf):
            self._check_shared(value)
        return self._output_index(operand, outputs)

    def _check_shared(self, value: Value) -> None:
        """Check that a result, which is a copy, is no view of another result or of an input."""
        root = value
        while is_view(root.node):
            root = root.node.input()
        is_given = root is not value and (root in self.graph.inputs or root.node.kind == "prim::GetAttr")
        if is_given or self.results.setdefault(root, value) is not value:
            raise Unsupported("results that share memory")

    def _output_index(self, operand: Operand, outputs: list[Operand]) -> int:
        for place, each in enumerate(outputs):
            if each is operand:
                return place
        outputs.append(operand)
        return len(outputs) - 1

    def _check_listed(self, value: Value) -> None:
        """Check that a list's tensors, which are copies, may not be arguments and are not written to."""
        aliases = self.plan.aliases
        if aliases.may_contain_alias([value], [each for each in self.graph.inputs if not _holds_numbers(each)]):
            raise Unsupported("a list that may hold arguments")

    def _translate_block(self, block: Block, body: list[Statement]) -> None:
        for node in block.nodes:
            self._translate_node(node, body)
        for value in block.outputs:
            if self._is_open(value):
                self._flush(body)

    def _translate_node(self, node: Node, body: list[Statement]) -> None:
        kind = node.kind
        if kind == "prim::Constant" or kind == "prim::TupleConstruct":
            return
        special = _SPECIAL.get(kind)
        if special is not None:
            special(self, node, body)
        elif kind in READS and is_tensor(node.input()):
            self._read_scalar(node, body)
        elif any(is_tensor(value) or is_tensor_list(value) for value in (*node.inputs, *node.outputs)):
            try:
                self._tensor_node(node, body)
            except JoinedLater:
                self.joins.add(node)
        elif any(isinstance(value.type, types.ListType) for value in (*node.inputs, *node.outputs)):
            known = [self._value(value) for value in node.inputs]
            if not self._fold_constants(node, known):
                self._list_node(node, body)
        else:
            self._translate_scalar_node(node, body)

    def _fold_constants(self, node: Node, known: Sequence[object]) -> bool:
        """Compute an operator on constants now; return False if it has to be computed later, for example because it fails."""
        if len(node.outputs) != 1 or not known or not all(isinstance(each, Plain | Literal) for each in known):
            return False
        operator = operator_of(node)
        if operator is None or not operator.is_pure or any(self.plan.aliases.has_writers(value) for value in node.inputs):
            return False
        try:
            result = operator.function(*[each.value for each in known])
        except Exception:  # the operator raises again when the program runs
            return False
        if isinstance(result, list) and self.plan.aliases.has_writers(node.output):
            return False
        self.values[node.output] = Literal(result) if isinstance(result, bool | int | float) else Plain(result)
        return True

    def _translate_scalar_node(self, node: Node, body: list[Statement]) -> None:
        known = [self._value(value) for value in node.inputs]
        if self._fold_constants(node, known):
            return
        op = SCALAR_OPERATORS.get(node.kind)
        is_known = len(node.outputs) == 1 and (node.output.type in SCALARS or isinstance(node.output.type, types.NumberType))
        if op is None or not is_known:
            for value in node.inputs:
                self._specialize(value)
            raise Unsupported(f"{node.kind} on numbers")
        operands = [self._operand(value, body) for value in node.inputs]
        op = op(operands) if callable(op) else op
        if op is None:
            raise Unsupported(f"{node.kind} on numbers of these types")
        target = self._var("n", SCALARS.get(node.output.type) or result_kind(op, operands))
        if result_kind(op, operands) != target.kind:
            raise Unsupported(f"{node.kind} with a result of another type")
        body.append(Compute(target, op, operands))
        self._note_origin(target, operands)
        self.values[node.output] = target

    def _note_origin(self, target: Var, operands: Sequence[Operand]) -> None:
        """Record that a number depends on inputs alone, so that it is known if they are."""
        if all(isinstance(each, Literal) or each in self.origins for each in operands):
            known = [self.origins[each] for each in operands if isinstance(each, Var)]
            self.origins[target] = frozenset().union(*known)

    def _is_same(self, node: Node, body: list[Statement]) -> None:
        """Translate `is` and `is not`, mostly with None."""
        one, other = (None if self._is_open(value) else self._value(value) for value in node.inputs)
        if isinstance(one, Plain) and one.value is None:
            one, other = other, one
        if not (isinstance(other, Plain) and other.value is None):
            self._translate_scalar_node(node, body)
            return
        negated = node.kind == "aten::__isnot__"
        if isinstance(one, Maybe):
            target = one.present
            if not negated:
                target = self._compute("not", [one.present], BOOL, body)
            self.values[node.output] = target
        else:
            self.values[node.output] = Literal((isinstance(one, Plain) and one.value is None) != negated)

    def _cast(self, node: Node, body: list[Statement]) -> None:
        """Translate a cast of an optional value that is known not to be None."""
        found = None if self._is_open(node.input()) else self._value(node.input())
        if isinstance(found, Maybe) and found.value is not None:
            self.values[node.output] = found.value
        elif found is None or isinstance(found, Maybe):
            self.values[node.output] = self._operand(node.input(), body)
        else:
            self.values[node.output] = found

    def _read_scalar(self, node: Node, body: list[Statement]) -> None:
        """Translate the conversion of a one-element tensor to a number."""
        source = self._operand(node.input(), body)
        if not isinstance(source, Var) or not isinstance(source.kind, TensorOf) or source.kind.numel != 1:
            raise Unsupported(f"{node.kind} of a tensor of several elements")
        own = source.kind.dtype
        natural = BOOL if own is bool_ else FLOAT if own.is_floating_point else INT
        kind = SCALARS.get(node.output.type) or (natural if isinstance(node.output.type, types.NumberType) else None)
        if kind is None or own.is_complex or own in (float16, bfloat16):
            raise Unsupported(f"{node.kind} of a tensor of dtype {own}")
        if node.kind.endswith("Implicit") and (source.kind.size or (kind == INT and natural != INT)):
            raise Unsupported(f"{node.kind} of a tensor of dtype {own} and size {source.kind.size}, which raises")
        if kind == INT and own.is_floating_point:
            whole = self._var("n", FLOAT)
            body.append(Read(whole, source))
            self.values[node.output] = self._compute("truncate", [whole], INT, body)
            return
        target = self._var("n", kind)
        body.append(Read(target, source))
        self.values[node.output] = target

    def _translate_attribute(self, node: Node, body: list[Statement]) -> None:
        source = self._value(node.input())
        if not isinstance(source, Source):
            raise Unsupported("an attribute of an object that the program makes")
        self.values[node.output] = Source(source.argument, (*source.path, node["name"]))

    def _translate_stop(self, node: Node, body: list[Statement]) -> None:
        self._flush(body)
        body.append(Stop())

    def _translate_uninitialized(self, node: Node, body: list[Statement]) -> None:
        self.values[node.output] = Undefined(without_none(node.output.type))

    def _translate_range(self, node: Node, body: list[Statement]) -> None:
        target = self._var("list", ListOf(INT))
        body.append(Compute(target, "range", [self._operand(node.input(), body)]))
        self.lengths[target] = None
        self.values[node.output] = target


_SPECIAL = {
    "prim::If": _Translator._translate_if, "prim::Loop": _Translator._translate_loop,
    "prim::GetAttr": _Translator._translate_attribute,
    "prim::RaiseException": _Translator._translate_stop, "prim::unchecked_cast": _Translator._cast,
    "prim::ListConstruct": _Translator._new_list, "prim::Uninitialized": _Translator._translate_uninitialized,
    "aten::__is__": _Translator._is_same, "aten::__isnot__": _Translator._is_same, "prim::ListUnpack": _Translator._unpack_list,
    "prim::rangelist": _Translator._translate_range,
}  # fmt: skip


def _holds_numbers(value: Value) -> bool:
    kind = value.type
    while isinstance(kind, types.ListType):
        kind = kind.element
    return kind in SCALARS
