"""What a translation from the jit's IR knows about values: operands, values that are known now, and the sources of inputs."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.plan import NeedsKind, Plan, Source
from rushlight.compiler.scripted.regions import Piece, Unsupported
from rushlight.core.tensor import Tensor
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    INT,
    Compute,
    Copy,
    External,
    Kind,
    ListOf,
    Literal,
    Null,
    Operand,
    Region,
    Statement,
    TensorOf,
    Var,
)
from rushlight.jit.ir.graph import Graph, Value
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types import kinds as types

SCALARS = {types.INT: INT, types.FLOAT: FLOAT, types.BOOL: BOOL}
"""The kinds of numbers, by jit type."""


@dataclass(frozen=True)
class Plain:
    """A value that is known now: None, a string, a list of constants, a size."""

    value: object


@dataclass(frozen=True, eq=False)
class Elements:
    """A list of numbers, each an operand, that is only read."""

    operands: list[Operand]


@dataclass(frozen=True, eq=False)
class Maybe:
    """A value that is None unless `present` is true; its `value` is None while its type is unknown."""

    present: Operand
    value: Operand | None


@dataclass(frozen=True, eq=False)
class Undefined:
    """The content of a variable that nothing has been assigned to yet."""

    type: types.Type


@dataclass(frozen=True, eq=False)
class Fixed:
    """An input that is a constant of the graph."""

    tensor: Tensor

    def read(self, arguments: Sequence[object]) -> Tensor:
        """Return the constant."""
        return self.tensor


def kind_of_type(kind: types.Type) -> Kind | None:
    """Return the kind for a type of numbers, or of lists of them; None for types whose kind depends on the value."""
    if isinstance(kind, types.ListType):
        element = kind_of_type(kind.element)
        return None if element is None else ListOf(element)
    return SCALARS.get(kind)


def kind_of(value: object) -> Kind | None:
    """Return the kind of an argument; None if programs don't take it."""
    if isinstance(value, Tensor):
        impl = value._impl
        return TensorOf(impl.dtype, tuple(impl.sizes)) if impl.device.type == "cpu" else None
    if isinstance(value, bool | int | float):
        return BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
    if isinstance(value, list) and value:
        kinds = {kind_of(item) for item in value} if not isinstance(value[0], bool | int | float) else set(map(type, value))
        element = kind_of(value[0])
        return ListOf(element) if len(kinds) == 1 and _may_be_listed(element) else None
    return None


def _may_be_listed(element: Kind | None) -> bool:
    while isinstance(element, ListOf):
        element = element.element
        if isinstance(element, TensorOf):
            return False
    return element is not None


def is_tensor(value: Value) -> bool:
    """Return whether a value is a tensor."""
    return isinstance(value.type, types.TensorType)


def is_tensor_list(value: Value) -> bool:
    """Return whether a value is a list of tensors, or may be one."""
    kind = without_none(value.type)
    return isinstance(kind, types.ListType) and isinstance(without_none(kind.element), types.TensorType)


def without_none(kind: types.Type) -> types.Type:
    """Return the element type of an optional type, or the type itself."""
    return kind.element if isinstance(kind, types.OptionalType) else kind


class Values:
    """The values of one translation. `piece` is the open straight-line piece; `depth` counts the enclosing loops.


    `makers` maps each tensor to those that made its memory, each an input's source or a value; `loops` maps a maker to its
    loop.
    `origins` maps a number to the only inputs that it depends on, `length_origins` does so for the lengths of lists. `settled`
    maps lists that began empty to the loop in which they were made. `stored` are the makers of tensors that lists hold copies
    of,
    `pending` numbers that are only put into tensors.
    """

    def __init__(self, graph: Graph, arguments: Sequence[object], threads: int | None, plan: Plan):
        self.graph = graph
        self.threads = threads
        self.arguments = arguments
        self.plan = plan
        self.values: dict[Value, object] = {}
        self.inputs: dict[Source | Fixed, Var] = {}
        self.written: list[tuple[Var, Var]] = []
        self.guards: dict[Source, object] = {}
        self.regions: list[Region] = []
        self.calls: list[External] = []
        self.draws = False
        self.numbers = itertools.count()
        self.piece: Piece | None = None
        self.lengths: dict[Var, int | None] = {}
        self.length_origins: dict[Var, frozenset[Source]] = {}
        self.settled: dict[Var, tuple] = {}
        self.stored: set[Hashable] = set()
        self.pending: dict[Value, Operand] = {}
        self.depth = 0
        self.makers: dict[Var, frozenset[Hashable]] = {}
        self.loops: dict[Hashable, tuple] = {}
        self.loop: tuple = ()
        self.origins: dict[Var, frozenset[Source]] = {}
        self.shares_lists = False
        self.changes_lists = False

    def _var(self, prefix: str, kind: Kind) -> Var:
        return Var(f"{prefix}{next(self.numbers)}", kind)

    def _new_variable(self, kind: Kind) -> Var:
        """Make a new variable of a kind."""
        return self._var("list" if isinstance(kind, ListOf) else "t" if isinstance(kind, TensorOf) else "n", kind)

    def _record_maker(self, var: Var, maker: Hashable) -> None:
        """Record that `maker` makes the memory of a tensor, in the current loop."""
        self.makers[var] = frozenset((maker,))
        self.loops.setdefault(maker, self.loop)

    def _input(self, source: Source | Fixed) -> object:
        """Return an argument or attribute as an operand, or as Plain if it is known."""
        found = self.inputs.get(source)
        if found is not None:
            return self.copies.get(found, found) if self.written else found
        value = source.read(self.arguments)
        if self.plan.takes_for_granted(source, value):
            self.guards[source] = value
            return Literal(value) if isinstance(value, bool | int | float) else Plain(value)
        kind = kind_of(value)
        if value == [] and isinstance(source, Source) and not source.path:
            kind = kind_of_type(self.graph.inputs[source.argument].type)
        if kind is None:
            raise Unsupported(f"an argument of type {type(value).__name__}")
        var = self.inputs[source] = self._var("in", kind)
        self._note_input(source, var)
        return self.copies.get(var, var)

    def _note_input(self, source: Source | Fixed, var: Var) -> None:
        """Record what is known about the length or the memory of an input."""
        if isinstance(var.kind, ListOf):
            is_of_tensors = isinstance(var.kind.element, TensorOf) and isinstance(source, Source) and not source.path
            self.lengths[var] = len(source.read(self.arguments)) if is_of_tensors else None
            is_own = self.plan.owns_lists and isinstance(source, Source) and not source.path
            self.shares_lists = self.shares_lists or not is_own
        elif isinstance(var.kind, TensorOf):
            self.makers[var], self.loops[source] = frozenset((source,)), ()
            if source in self.plan.written:
                if isinstance(source, Fixed):
                    raise Unsupported("a write to a constant")
                copy = self._var("own", var.kind)
                self.makers[copy] = self.makers[var]
                self.written.append((var, copy))
        elif isinstance(source, Source) and not source.path:
            self.origins[var] = frozenset((source,))

    @property
    def copies(self) -> dict[Var, Var]:
        """Return the copies that replace inputs which are written to."""
        return dict(self.written)

    def _value(self, value: Value) -> object:
        """Return a value as an operand, or as Plain; None if the open piece makes it."""
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
        """Return a value as an operand; close the open piece if that makes it."""
        if self.piece is not None and self.piece.makes(value):
            self._flush(body)
        found = self._value(value)
        if isinstance(found, Plain) and isinstance(found.value, bool | int | float):
            return Literal(found.value)
        if isinstance(found, Plain) and isinstance(found.value, list):
            return self._as_list(found.value, value, body)
        if isinstance(found, Elements):
            return self._make_list(found.operands, kind_of_type(value.type), body)
        if isinstance(found, Undefined):
            return self._undefined_operand(value, found)
        if isinstance(found, Maybe) and found.value is None:
            raise NeedsKind("an optional value of unknown type")
        if not isinstance(found, Var | Literal | Null):
            raise Unsupported(f"{value.node.kind} where a number or tensor is needed")
        return found

    def _undefined_operand(self, value: Value, found: Undefined) -> Null:
        """Return the operand for a variable that nothing was assigned to."""
        kind = kind_of_type(found.type) or self.plan.kinds.get(value)
        if kind is None:
            raise NeedsKind("a value that nothing has been put into")
        return Null(kind)

    def _as_list(self, items: list, value: Value, body: list[Statement]) -> Var:
        """Make a list of the program from constants."""
        kind = kind_of_type(value.type) or kind_of(items)
        if kind is None or isinstance(kind.element, TensorOf | ListOf):
            raise Unsupported("a list of constants")
        return self._make_list([Literal(item) for item in items], kind, body)

    def _make_list(self, operands: Sequence[Operand], kind: ListOf, body: list[Statement]) -> Var:
        """Make a list of the program with these elements."""
        target = self._new_variable(kind)
        body.append(Compute(target, "list", operands))
        self.lengths[target] = len(operands)
        return target

    def _contiguous(self, operand: Operand, body: list[Statement]) -> Operand:
        """Copy a strided tensor to contiguous memory."""
        if not isinstance(operand.kind, TensorOf) or operand.kind.strides is None:
            return operand
        target = self._new_variable(TensorOf(operand.kind.dtype, operand.kind.size))
        body.append(Copy(target, operand))
        self.makers[target] = frozenset()
        return target

    def _specialize(self, value: Value) -> None:
        """Specialize on the inputs that determine a number, or the numbers of a list, so that its value is known."""
        found = self._value(value)
        parts = found.operands if isinstance(found, Elements) else [found]
        if value.node.kind == "prim::ListConstruct":
            parts = [self._value(each) for each in value.node.inputs]
        for each in parts:
            if isinstance(each, Var):
                self.plan.fix(self.origins.get(each, ()))

    def _flush(self, body: list[Statement]) -> None:
        """Close the open piece: it runs here."""
        raise NotImplementedError
