"""Sugared values: the compile-time meanings of expressions.

Most are values of the graph (`SimpleValue`); others exist only at compile time: functions, modules, classes, constants of
Python. Each defines how it is selected from, called, unpacked, iterated and indexed. Stage: jit, emission.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Value
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import Type

if TYPE_CHECKING:
    from rushlight.jit.emit.emitter import Emitter


@dataclass(slots=True)
class NamedValue:
    """An argument: a graph value or a Python constant, its source range, and its name if it was passed by keyword."""

    range: SourceRange
    value: object
    name: str | None = None


class SugaredValue:
    """Base class: operations that a kind of value does not define are errors that name the kind."""

    def kind(self) -> str:
        """Return the kind's name in errors."""
        return type(self).__name__

    def simple_value(self) -> Value | None:
        """Return the graph value, if it already is one."""
        return None

    def has_value(self) -> bool:
        """Return whether `as_value` returns a value: for graph values, constants, and (nested) tuples of these."""
        return False

    def as_value(self, where: SourceRange, emitter: Emitter) -> Value:
        """Return the graph value. Values that exist only at compile time have none and raise."""
        raise ErrorReport(where, f"{self.kind()} cannot be used as a value")

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        """Emit `value.name`."""
        raise ErrorReport(where, f"attribute lookup is not defined on {self.kind()}")

    def has_attribute(self, where: SourceRange, emitter: Emitter, name: str) -> bool:
        """Emit `hasattr(value, name)`."""
        raise ErrorReport(where, f"hasattr is not defined on {self.kind()}")

    def set_attribute(self, where: SourceRange, emitter: Emitter, name: str, value: Value) -> None:
        """Emit `value.name = other`."""
        raise ErrorReport(where, f"attribute assignment is not defined on {self.kind()}")

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        """Emit `value(args, keywords)`."""
        raise ErrorReport(where, f"cannot call a {self.kind()}")

    def as_tuple(self, where: SourceRange, emitter: Emitter, count: int | None = None) -> list[SugaredValue]:
        """Return the elements, for unpacking into `count` targets."""
        raise ErrorReport(where, f"{self.kind()} cannot be used as a tuple")

    def as_iterable(self, where: SourceRange, emitter: Emitter) -> SugaredValue:
        """Return the iterable of a loop over it."""
        return self

    def static_elements(self, where: SourceRange, emitter: Emitter) -> list[SugaredValue] | None:
        """Return the elements for a loop that is unrolled at compile time; None if the loop runs in the graph."""
        return None

    @property
    def has_own_length(self) -> bool:
        """Return whether a user's class defines `__len__` for it."""
        return False

    def length(self, where: SourceRange, emitter: Emitter) -> Value:
        """Emit `len(value)`."""
        raise ErrorReport(where, f"{self.kind()} is not iterable")

    def lengths(self, where: SourceRange, emitter: Emitter) -> list[Value]:
        """Return the lengths whose minimum is its length: several if it iterates over several iterables at once."""
        return [self.length(where, emitter)]

    def item(self, where: SourceRange, emitter: Emitter, index: Value, kind: Type | None = None) -> SugaredValue:
        """Emit `value[index]`."""
        raise ErrorReport(where, f"'{self.kind()}' object is not subscriptable")

    def as_type(self) -> Type | None:
        """Return the type that it denotes, if it denotes one."""
        return None

    def enter(self, where: SourceRange, emitter: Emitter) -> SugaredValue:
        """Emit `value.__enter__()`."""
        raise ErrorReport(where, f"'{self.kind()}' object does not support the context manager protocol")


@dataclass
class SimpleValue(SugaredValue):
    """A value of the graph. The operations depend on its type, and are in `simple_values.py`."""

    value: Value

    def kind(self) -> str:
        return f"value of type '{self.value.type}'"

    def simple_value(self) -> Value:
        return self.value

    def has_value(self) -> bool:
        return True

    def as_value(self, where: SourceRange, emitter: Emitter) -> Value:
        return self.value

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        return emitter.simple.attribute(where, self.value, name)

    def has_attribute(self, where: SourceRange, emitter: Emitter, name: str) -> bool:
        return emitter.simple.has_attribute(where, self.value, name)

    def set_attribute(self, where: SourceRange, emitter: Emitter, name: str, value: Value) -> None:
        emitter.simple.set_attribute(where, self.value, name, value)

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        return emitter.simple.call(where, self.value, args, keywords)

    def as_tuple(self, where: SourceRange, emitter: Emitter, count: int | None = None) -> list[SugaredValue]:
        return emitter.simple.unpack(where, self.value, count)

    def static_elements(self, where: SourceRange, emitter: Emitter) -> list[SugaredValue] | None:
        return emitter.simple.static_elements(where, self.value)

    def length(self, where: SourceRange, emitter: Emitter) -> Value:
        return emitter.simple.length(where, self.value)

    def item(self, where: SourceRange, emitter: Emitter, index: Value, kind: Type | None = None) -> SugaredValue:
        return emitter.simple.item(where, self.value, index)

    def enter(self, where: SourceRange, emitter: Emitter) -> SugaredValue:
        return emitter.simple.enter(where, self.value)


@dataclass
class TupleOfSugared(SugaredValue):
    """Several sugared values in a tuple."""

    items: list[SugaredValue]

    def kind(self) -> str:
        return "Tuple"

    def has_value(self) -> bool:
        return all(item.has_value() for item in self.items)

    def as_value(self, where: SourceRange, emitter: Emitter) -> Value:
        return emitter.make_tuple([item.as_value(where, emitter) for item in self.items], where)

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        return emitter.simple.attribute(where, self.as_value(where, emitter), name)

    def as_tuple(self, where: SourceRange, emitter: Emitter, count: int | None = None) -> list[SugaredValue]:
        return self.items

    def static_elements(self, where: SourceRange, emitter: Emitter) -> list[SugaredValue] | None:
        return self.items

    def length(self, where: SourceRange, emitter: Emitter) -> Value:
        if not self.items or any(item.simple_value() is None for item in self.items):
            return emitter.constant(len(self.items), where)
        return emitter.simple.length(where, self.as_value(where, emitter))

    def item(self, where: SourceRange, emitter: Emitter, index: Value, kind: Type | None = None) -> SugaredValue:
        position = index.constant()
        if not isinstance(position, int):
            raise ErrorReport(
                where, "Expected integer literal for index. A tuple of modules or functions has no index at run time"
            )
        if not -len(self.items) <= position < len(self.items):
            raise ErrorReport(where, f"tuple index out of range: {position} of {len(self.items)} elements")
        return self.items[position]
