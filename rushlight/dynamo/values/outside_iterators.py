"""Iterators that the program was given: over lists, tuples and ranges. They are where they were left, and go on from there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.sources import Asked, Local, Source
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.iterators import IteratorValue
from rushlight.dynamo.values.sequences import SequenceIteratorValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

KINDS = (type(iter([])), type(iter(())), type(iter(range(0))))


def values_of(iterator: Any) -> Any:
    """What an iterator goes over; an empty tuple at its end."""
    return iterator.__reduce__()[1][0]


def position_of(iterator: Any) -> int:
    """How many of these values were taken. From Python 3.12 on ranges shrink instead, and the state is None."""
    return (*iterator.__reduce__(), None)[2] or 0


class OutsideIteratorValue(SequenceIteratorValue):
    """An iterator from outside. What the program takes from it is taken from the real one after the graph has run."""

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

    def _taken(self) -> Iterator[Value]:
        for value in super()._taken():
            self.effects.mutates(self)
            yield value
        self.effects.mutates(self)

    def write(self, writer: Writer) -> str:
        return self.source.expression()

    def write_back(self, writer: Writer, target: str) -> list[str]:
        """Statements that bring the iterator `target` to where the program left it."""
        if self.index < 0:
            return [f"for _ in {target}: pass"]
        return [f"for _ in range({self.index - self.first}): next({target})"]


def from_outside(tx: Following, value: Any, source: Source) -> IteratorValue | None:
    """The tracked value of a real iterator; None for kinds that are not followed.

    Python goes on with the loops of a frame that a graph break left: what runs for one value serves the following, too.
    """
    is_of_loop = isinstance(source, Local) and source.key.startswith("__stack")
    if is_of_loop or type(value) not in KINDS:
        return None
    return OutsideIteratorValue(tx, value, source) if isinstance(values_of(value), list | tuple | range) else None
