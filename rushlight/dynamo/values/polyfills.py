"""Python versions of C functions of the standard library, which captures follow instead."""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def until(function: Callable, sentinel: Any) -> Iterator:
    """Implement `iter(function, sentinel)`."""
    while (found := function()) != sentinel:
        yield found


def cycle(iterable: Iterable) -> Iterator:
    """Implement `itertools.cycle`."""
    kept = []
    for item in iterable:
        kept.append(item)
        yield item
    while kept:
        yield from kept


def takewhile(predicate: Callable, iterable: Iterable) -> Iterator:
    """Implement `itertools.takewhile`."""
    for item in iterable:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate: Callable, iterable: Iterable) -> Iterator:
    """Implement `itertools.dropwhile`."""
    is_dropping = True
    for item in iterable:
        is_dropping = is_dropping and bool(predicate(item))
        if not is_dropping:
            yield item


def groupby(iterable: Iterable, key: Callable | None = None) -> Iterator:
    """Implement `itertools.groupby`; reads each group at once."""
    group: list = []
    current = None
    for item in iterable:
        found = item if key is None else key(item)
        if group and found != current:
            yield current, iter(group)
            group = []
        current = found
        group.append(item)
    if group:
        yield current, iter(group)


def tee(iterable: Iterable, n: int = 2) -> tuple:
    """Implement `itertools.tee`; reads everything at once."""
    items = list(iterable)
    return tuple([iter(items) for _ in range(n)])


def count_elements(mapping: dict, iterable: Iterable) -> None:
    """Count elements as `collections.Counter` does."""
    for item in iterable:
        mapping[item] = mapping.get(item, 0) + 1


class CompareKey:
    """The keys of `functools.cmp_to_key`."""

    __slots__ = ("comparison", "obj")
    __hash__ = None

    def __init__(self, comparison: Callable, obj: Any) -> None:
        self.comparison = comparison
        self.obj = obj

    def __lt__(self, other: CompareKey) -> bool:
        return self.comparison(self.obj, other.obj) < 0

    def __gt__(self, other: CompareKey) -> bool:
        return self.comparison(self.obj, other.obj) > 0

    def __eq__(self, other: object) -> bool:
        return self.comparison(self.obj, other.obj) == 0


def cmp_to_key(mycmp: Callable) -> Callable:
    """Implement `functools.cmp_to_key`."""
    return lambda obj: CompareKey(mycmp, obj)


def count_of(a: Iterable, b: Any) -> int:
    """Implement `operator.countOf`."""
    return sum([1 for item in a if item is b or item == b])


def index_of(a: Iterable, b: Any) -> int:
    """Implement `operator.indexOf`."""
    for index, item in enumerate(a):
        if item is b or item == b:
            return index
    raise ValueError("sequence.index(x): x not in sequence")


def concat(a: Any, b: Any) -> Any:
    """Implement `operator.concat`."""
    return a + b


POLYFILLS: dict[Any, Callable] = {
    itertools.cycle: cycle, itertools.takewhile: takewhile, itertools.dropwhile: dropwhile, itertools.groupby: groupby,
    itertools.tee: tee, functools.cmp_to_key: cmp_to_key, collections._count_elements: count_elements,
    operator.countOf: count_of, operator.indexOf: index_of, operator.concat: concat,
}  # fmt: skip
