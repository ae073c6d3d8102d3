"""Weak references: the object that they refer to is tracked, and guarded to be there."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Asked, Source
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.construction import CONSTRUCTORS

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


def referent_of(reference: weakref.ref) -> Any:
    """Return the object that a weak reference refers to."""
    return reference()


class WeakReferenceValue(Value):
    """A `weakref.ref` without callback."""

    def __init__(self, referent: Value, source: Source | None = None) -> None:
        self.referent = referent
        self.source = source

    def python_type(self) -> type:
        return weakref.ref

    def truth(self, tx: Following) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return self is other

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if args or kwargs:
            raise GraphBreak("a weak reference that is called with arguments")
        return self.referent

    def write(self, writer: Writer) -> str:
        return f"{writer.name_of(weakref.ref, 'ref')}({writer.expression(self.referent)})"


def from_outside(tx: Following, reference: weakref.ref, source: Source) -> WeakReferenceValue:
    """Track a real reference."""
    tx.guards.same_type(source, reference)
    place = Asked(source, tx.guards.name(referent_of, "referent_of"))
    return WeakReferenceValue(tx.wrap(reference(), place), source)


def _make(tx: Following, referent: Value) -> WeakReferenceValue:
    if referent.source is None:
        raise GraphBreak("a weak reference to an object that the captured program made")
    return WeakReferenceValue(referent)


CONSTRUCTORS[weakref.ref] = _make
