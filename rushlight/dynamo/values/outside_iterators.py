"""Iterators from outside, over lists, tuples and ranges. They continue from their current position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.sources import STACK_PARAMETER, Asked, Local, Source
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.iterators import IteratorValue
from rushlight.dynamo.values.sequences import SequenceIteratorValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

KINDS = (type(iter([])), type(iter(())), type(iter(range(0))))


def values_of(iterator: Any) -> Any:
    """Return the container that an iterator reads; an empty tuple at its end."""
    return iterator.__reduce__()[1][0]


def position_of(iterator: Any) -> int:
    """Return the number of consumed values. Range iterators have a state of None since Python 3.12, because they shrink
    instead."""
    return (*iterator.__reduce__(), None)[2] or 0


class OutsideIteratorValue(SequenceIteratorValue):
    """An iterator from outside. After the graph has run, the real one is advanced to the same position."""

    def __init__(self, tx: Following, real: Any, source: Source) -> None:
        guards = tx.guards
        guards.same_type(source, real)
        name = guards.name(values_of, "values_of", is_owned=True)
        owner = tx.wrap(values_of(real), Asked(source, name))
        super().__init__(owner)
        self.kind = type(real)
        self.index = self.first = position_of(real)
        guards.same_value(Asked(source, guards.name(position_of, "position_of", is_owned=True)), self.first)
        self.source = source
        self.effects = tx.effects

    def _iterate(self) -> Iterator[Value]:
        for value in super()._iterate():
            self.effects.mutates(self)
            yield value
        self.effects.mutates(self)

    def write(self, writer: Writer) -> str:
        return self.source.expression()

    def write_back(self, writer: Writer, target: str) -> list[str]:
        """Return statements that advance the iterator `target` to its position in the program."""
        if self.index < 0:
            return [f"for _ in {target}: pass"]
        return [f"for _ in range({self.index - self.first}): next({target})"]


def from_outside(tx: Following, value: Any, source: Source) -> IteratorValue | None:
    """Track a real iterator; None for unsupported kinds.

    The iterator of a loop that a graph break left is not tracked: Python continues that loop, and one capture of its body
    serves all values.
    """
    is_of_loop = isinstance(source, Local) and source.key.startswith(STACK_PARAMETER)
    if is_of_loop or type(value) not in KINDS:
        return None
    return OutsideIteratorValue(tx, value, source) if isinstance(values_of(value), list | tuple | range) else None
