"""Iterators over tracked values, and the special methods that all containers share, called by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import NONE

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


class IteratorValue(Value):
    """An iterator over tracked values, some of which may have been consumed.

    `runs_code` says that each step runs code of the program, so steps must not be taken early.
    """

    def __init__(self, items: Iterator[Value], kind: type | None = None, runs_code: bool = False) -> None:
        self.items = items
        self.kind = kind
        self.runs_code = runs_code

    def python_type(self) -> type:
        return super().python_type() if self.kind is None else self.kind

    def truth(self, tx: Following) -> bool:
        return True

    def items_of(self, tx: Following) -> list[Value]:
        return list(self.items)

    def next(self, tx: Following) -> Value | None:
        """Return the next value, None at the end."""
        return next(self.items, None)

    def same_as(self, other: Value) -> bool:
        return self is other

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__iter__":
            return self
        if name == "__next__":
            return tx.next_or_raise(self)
        return unknown_method(self, name)

    def write(self, writer: Writer) -> str:
        if self.runs_code:
            raise GraphBreak("a generator or lazy iterator that is not at its end cannot be made again")
        remaining = list(self.items)
        self.items = iter(remaining)
        return f"iter([{', '.join(writer.expression(item) for item in remaining)}])"


class WrappedIteratorValue(IteratorValue):
    """`enumerate`, `zip`, `map` or `filter` over the iterators `inner`; `count` is the number of values consumed."""

    def __init__(self, kind: type, items: Iterator[Value], inner: list[Value], function: Value | None = None, start: int = 0):
        super().__init__(self._count_taken(items), kind)
        self.inner = inner
        self.function = function
        self.count = start

    def _count_taken(self, items: Iterator[Value]) -> Iterator[Value]:
        for item in items:
            self.count += 1
            yield item

    def write(self, writer: Writer) -> str:
        parts = [writer.expression(value) for value in (*([self.function] if self.function else []), *self.inner)]
        parts += [str(self.count)] if self.kind is enumerate else []
        return f"{writer.name_of(self.kind, self.kind.__name__)}({', '.join(parts)})"


def advanced(iterator: Iterator, count: int) -> Iterator:
    """Consume `count` values of an iterator and return it."""
    for _ in range(count):
        next(iterator)
    return iterator


def iterate(tx: Following, value: Value) -> Value:
    """Evaluate `iter(value)`. Lists and dicts are followed while they change; other containers are read up front."""
    return value if isinstance(value, IteratorValue) else value.iterator(tx) or IteratorValue(iter(value.items_of(tx)))


def unknown_method(self: Value, name: str) -> Value:
    """Break the graph at an unsupported method."""
    raise GraphBreak(f"method {name!r} of {self}")


def call_handler(handler: Callable, self: Value, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Run the handler of a builtin method; GraphBreak if it does not take these arguments, so that Python reports them."""
    try:
        return handler(self, tx, *args, **kwargs)
    except TypeError as error:
        if error.__traceback__.tb_next is None:
            raise GraphBreak(f"arguments that a method of {self} does not take") from None
        raise


def special_method(self: Value, tx: Following, name: str, args: list[Value]) -> Value:
    """Return a special method of a container, which the program calls by name."""
    if name == "__getitem__":
        return self.item(tx, *args)
    if name == "__setitem__":
        self.set_item(tx, *args)
        return NONE
    if name == "__delitem__":
        self.delete_item(tx, *args)
        return NONE
    if name == "__len__":
        return self.length(tx)
    if name == "__iter__":
        return iterate(tx, self)
    return unknown_method(self, name)


