"""What a translation from the jit's IR knows of values: operands, values that are known now, and where inputs come from."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.regions import Piece, Unsupported
from rushlight.core.tensor import Tensor
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    INT,
    Kind,
    ListOf,
    Literal,
    Operand,
    Region,
    Scalar,
    Statement,
    TensorOf,
    Var,
)
from rushlight.jit.ir.graph import Graph, Value
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types import kinds as types

SCALARS = {types.INT: INT, types.FLOAT: FLOAT, types.BOOL: BOOL}
"""The numbers of programs by type."""
MUTATING = frozenset(
    f"aten::{name}" for name in ("append", "_set_item", "pop", "clear", "extend", "insert", "remove", "reverse", "sort")
)
"""Operators that change a list."""


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


def is_tensor(value: Value) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value.type, types.TensorType)


def is_tensor_list(value: Value) -> bool:
    """Whether a value is a list of tensors, or may be."""
    kind = without_none(value.type)
    return isinstance(kind, types.ListType) and isinstance(without_none(kind.element), types.TensorType)


def without_none(kind: types.Type) -> types.Type:
    """What an optional type is beside None."""
    return kind.element if isinstance(kind, types.OptionalType) else kind


class Values:
    """The values of one translation. `piece` is the straight-line piece that is open; `depth` counts the loops around."""

    def __init__(self, graph: Graph, arguments: Sequence[object], threads: int):
        self.graph = graph
        self.threads = threads
        self.arguments = arguments
        self.values: dict[Value, object] = {}
        self.inputs: dict[Source, Var] = {}
        self.regions: list[Region] = []
        self.numbers = itertools.count()
        self.piece: Piece | None = None
        self.lengths: dict[Var, int | None] = {}
        self.depth = 0
        self.shares_lists = False
        self.changes_lists = False

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
                self.shares_lists = self.shares_lists or not isinstance(source, Source) or bool(source.path)
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

    def _flush(self, body: list[Statement]) -> None:
        """Close the open piece: it runs here."""
        raise NotImplementedError
