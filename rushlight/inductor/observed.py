"""The registry of compiled graphs, and the observer of their calls.

In: graphs as they are made, and at most one active observer. Out: every graph, also a later one, diverts its calls to the
observer. Stage: inductor, calling.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rushlight.core.algebra import Var
    from rushlight.inductor.build import Library
    from rushlight.inductor.codegen.cpp.program import Program
    from rushlight.inductor.graph import LoweredGraph


class Observed(Protocol):
    """A compiled graph or structured program, as observers see it: a library built from `source`. `kind` is the name of its
    class."""

    kind: str
    number: int
    library: Library
    source: str

    def parts(self) -> list[tuple[LoweredGraph, Program]]:
        """The lowered graphs in the library, each with its program: one, or the regions of a structured program."""

    def allocated_by(self, sizes: Mapping[Var, int]) -> int:
        """The bytes that one call allocates, for these values of the size symbols: results, and the arena."""

    def timed_source(self) -> str:
        """The text of a variant that measures the kernels of all parts, in their order."""

    def divert(self, observer: Observer | None) -> None:
        """Make calls ask the observer for the code to run."""


class Observer(Protocol):
    """Receives the diverted calls. An observer whose `gives_way` is true is suspended while another one observes."""

    gives_way: bool

    def entry_for(self, graph: Observed) -> int:
        """Return the address to call for one run of a graph."""

    def ran(self, graph: Observed, sizes: Mapping[Var, int]) -> None:
        """Called after a run, for these values of the size symbols."""

    def resumed(self) -> None:
        """Called when the observer that suspended this one has left: runs since then were not this one's."""


_numbers = itertools.count()
_graphs: weakref.WeakSet[Observed] = weakref.WeakSet()
_lock = threading.RLock()  # reentrant: a garbage collection inside the lock may make graphs
_observer: Observer | None = None
_waiting: Observer | None = None  # the suspended observer, if any


def enlist(graph: Observed) -> None:
    """Register a graph under the next number."""
    with _lock:
        graph.number = next(_numbers)
        _graphs.add(graph)
        if _observer is not None:
            graph.divert(_observer)


def mark() -> int:
    """Take a number that no graph gets, for `made_since`: all graphs made from now on have greater ones."""
    return next(_numbers)


def made_since(number: int) -> list[Observed]:
    """Return the living graphs with numbers greater than `number`, in order."""
    with _lock:
        return sorted((graph for graph in _graphs if graph.number > number), key=lambda graph: graph.number)


def observe(observer: Observer) -> bool:
    """Divert all calls to `observer`. Returns False, without effect, if another observer is active that does not give way."""
    global _waiting
    with _lock:
        if _observer is not None and (not _observer.gives_way or observer.gives_way):
            return False
        _waiting = _observer
        _divert(observer)
        return True


def leave_alone(observer: Observer) -> None:
    """Stop diverting calls to `observer`, and resume the observer that it suspended, if any."""
    global _waiting
    with _lock:
        if observer is _waiting:
            _waiting = None
        elif observer is _observer:
            if _waiting is not None:
                _waiting.resumed()
            _divert(_waiting)
            _waiting = None


def _divert(observer: Observer | None) -> None:
    global _observer
    _observer = observer
    for graph in _graphs:
        graph.divert(observer)
