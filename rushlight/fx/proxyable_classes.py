"""ProxyableClassMeta: record the construction of objects in a traced program.

In: calls of a class with this metaclass. Out: one node for each call with proxies among its arguments; objects made from plain
values become nodes when they are arguments of one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.fx.proxy import find_tracer, proxies_in

__all__ = ["ProxyableClassMeta", "construction_of", "noting_constructions"]


class _Constructions(threading.local):
    noted: dict[int, tuple[Any, tuple, dict]] | None = None


_constructions = _Constructions()


class ProxyableClassMeta(type):
    """The metaclass of classes whose objects traced programs may make: calling the class becomes one node."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if next(proxies_in((args, kwargs)), None) is not None:
            return find_tracer((args, kwargs)).create_proxy("call_function", cls, args, kwargs)
        made = super().__call__(*args, **kwargs)
        if _constructions.noted is not None:
            _constructions.noted[id(made)] = made, args, kwargs
        return made


@contextmanager
def noting_constructions() -> Iterator[None]:
    """Record, in this thread, the arguments of objects of such classes that are made in the block."""
    before, _constructions.noted = _constructions.noted, {}
    try:
        yield
    finally:
        _constructions.noted = before


def construction_of(value: Any) -> tuple[tuple, dict] | None:
    """Return the arguments that an object was made from in the block of `noting_constructions`; None for any other object."""
    found = (_constructions.noted or {}).get(id(value))
    return None if found is None else found[1:]
