"""Which compiled graphs there are, and what observes their calls at present.

In: the graphs that are made, and at most one observer at a time. Out: every graph, also one made later, has been told to divert
its calls to the observer. Stage: inductor, calling.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rushlight.inductor.compiled import CompiledGraph
    from rushlight.inductor.profiling import Recorder

_numbers = itertools.count()
_graphs: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()
_lock = threading.RLock()  # what a collection ends meanwhile may make graphs
_observer: Recorder | None = None


def enlist(graph: CompiledGraph) -> None:
    """Let observers know of a graph, which is given the next number."""
    with _lock:
        graph.number = next(_numbers)
        _graphs.add(graph)
        if _observer is not None:
            graph.divert(_observer)


def next_number() -> int:
    """A number that graphs made from now on are above of."""
    return next(_numbers)


def made_since(number: int) -> list[CompiledGraph]:
    """The graphs above a number that are alive, in order."""
    with _lock:
        return sorted((graph for graph in _graphs if graph.number > number), key=lambda graph: graph.number)


def observe(observer: Recorder) -> bool:
    """Divert all calls to `observer`; False, and nothing done, while another one is there."""
    with _lock:
        if _observer is not None:
            return False
        _divert(observer)
        return True


def leave_alone() -> None:
    """Have no observer any more."""
    with _lock:
        _divert(None)


def _divert(observer: Recorder | None) -> None:
    global _observer
    _observer = observer
    for graph in _graphs:
        graph.divert(observer)
