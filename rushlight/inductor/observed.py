"""Which compiled graphs there are, and what observes their calls at present.

In: the graphs that are made, and at most one observer at a time. Out: every graph, also one made later, has been told to divert
its calls to the observer. Stage: inductor, calling.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rushlight.inductor.compiled import CompiledGraph
    from rushlight.inductor.profiling import Recorder

_graphs: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()
_lock = threading.RLock()  # what a collection ends meanwhile may make graphs
_observer: Recorder | None = None


def enlist(graph: CompiledGraph) -> None:
    """Let observers know of a graph."""
    with _lock:
        _graphs.add(graph)
        if _observer is not None:
            graph.divert(_observer)


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
