"""Which compiled graphs there are, and what observes their calls at present.

In: the graphs that are made, and at most one observer at a time. Out: every graph, also one made later, has been told to divert
its calls to the observer. Stage: inductor, calling.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rushlight.core.algebra import Var
    from rushlight.inductor.build import Library


class Observed(Protocol):
    """A compiled graph, as observers know it."""

    number: int
    library: Library

    def details(self) -> tuple[Any, Any]:
        """The lowered graph and its program."""

    def divert(self, observer: Observer | None) -> None:
        """Have calls ask the observer which code to run."""


class Observer(Protocol):
    """What calls of graphs are diverted to. One that `gives_way` sees no calls while another one observes."""

    gives_way: bool

    def entry_for(self, graph: Observed) -> int:
        """The address to call for one run of a graph."""

    def ran(self, graph: Observed, sizes: Mapping[Var, int]) -> None:
        """Called after a run, for these values of the size symbols."""


_numbers = itertools.count()
_graphs: weakref.WeakSet[Observed] = weakref.WeakSet()
_lock = threading.RLock()  # what a collection ends meanwhile may make graphs
_observer: Observer | None = None
_waiting: Observer | None = None  # it gave way


def enlist(graph: Observed) -> None:
    """Let observers know of a graph, which is given the next number."""
    with _lock:
        graph.number = next(_numbers)
        _graphs.add(graph)
        if _observer is not None:
            graph.divert(_observer)


def next_number() -> int:
    """A number that graphs made from now on are above of."""
    return next(_numbers)


def made_since(number: int) -> list[Observed]:
    """The graphs above a number that are alive, in order."""
    with _lock:
        return sorted((graph for graph in _graphs if graph.number > number), key=lambda graph: graph.number)


def observe(observer: Observer) -> bool:
    """Divert all calls to `observer`; False, and nothing done, while another one is there that does not give way."""
    global _waiting
    with _lock:
        if _observer is not None and (not _observer.gives_way or observer.gives_way):
            return False
        _waiting = _observer
        _divert(observer)
        return True


def leave_alone(observer: Observer) -> None:
    """Divert calls to `observer` no more; to the one that gave way to it, if there is one."""
    global _waiting
    with _lock:
        if observer is _waiting:
            _waiting = None
        elif observer is _observer:
            _divert(_waiting)
            _waiting = None


def _divert(observer: Observer | None) -> None:
    global _observer
    _observer = observer
    for graph in _graphs:
        graph.divert(observer)
