"""Iterators over tracked values, and the special methods that all containers share, called by name."""

from __future__ import annotations

import itertools
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
    """`enumerate`, `zip`, `map`, `starmap` and the like over the iterators `inner`; `count` is the number of values consumed.

    Only for iterators whose state is that of the inner ones and of the count: generated code makes them again from these.
    """

    is_strict = False  # True for a `zip` that checks lengths

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
        parts += ["strict=True"] if self.is_strict else []
        return f"{writer.name_of(self.kind, self.kind.__name__)}({', '.join(parts)})"


class SlicedIteratorValue(WrappedIteratorValue):
    """`itertools.islice` over an iterator; its bounds count from the position that the inner iterator had at first."""

    def __init__(self, items: Iterator[Value], inner: Value, bounds: tuple[int, int | None, int]) -> None:
        super().__init__(itertools.islice, items, [inner])
        self.start, self.stop, self.step = bounds

    def write(self, writer: Writer) -> str:
        consumed = self.start + (self.count - 1) * self.step + 1 if self.count else 0
        start = self.start + self.count * self.step - consumed
        stop = None if self.stop is None else max(self.stop - consumed, 0)
        bounds = f"{start if stop is None else min(start, stop)}, {stop}, {self.step}"
        return f"{writer.name_of(self.kind, 'islice')}({writer.expression(self.inner[0])}, {bounds})"


class AccumulatingIteratorValue(IteratorValue):
    """`itertools.accumulate`: `total` is the last value that it yielded, or at first the initial one."""

    def __init__(self, items: Iterator[Value], inner: Value, function: Value, total: Value | None) -> None:
        super().__init__(self._keep_total(items), itertools.accumulate, runs_code=True)
        self.inner = inner
        self.function = function
        self.total = total
        self.is_started = False

    def _keep_total(self, items: Iterator[Value]) -> Iterator[Value]:
        for item in items:
            self.total, self.is_started = item, True
            yield item

    def write(self, writer: Writer) -> str:
        parts = [writer.expression(self.inner), writer.expression(self.function)]
        parts += [f"initial={writer.expression(self.total)}"] if self.total is not None else []
        text = f"{writer.name_of(self.kind, 'accumulate')}({', '.join(parts)})"
        return f"{writer.name_of(advanced, 'advanced')}({text}, 1)" if self.is_started else text


class EndlessIteratorValue(IteratorValue):
    """`itertools.count`, or `itertools.repeat` with or without an end: `written` returns the call that makes the rest."""

    def __init__(self, kind: type, items: Iterator[Value], written: Callable[[Writer], str]) -> None:
        super().__init__(items, kind, runs_code=True)
        self.written = written

    def write(self, writer: Writer) -> str:
        return f"{writer.name_of(self.kind, self.kind.__name__)}({self.written(writer)})"


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
    if name == "__class__":
        return tx.wrap_class(self.python_type()).call(tx, args, {})
    return unknown_method(self, name)
