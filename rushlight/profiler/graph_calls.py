"""Calls of compiled graphs, and their kernels, as events of a profiler.

In: the runs of all compiled graphs. Out: spans of the recording of the thread that runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rushlight.autograd.profiler import compile_stage
from rushlight.autograd.profiler_recording import Recording, Span
from rushlight.core.thread_state import state
from rushlight.inductor import observed
from rushlight.inductor.profiling import KernelTimes, Recorder, Timed

if TYPE_CHECKING:
    from rushlight.core.algebra import Var
    from rushlight.inductor.observed import Observed


class GraphCalls(Recorder):
    """Hands calls of compiled graphs to the thread's recording. At its first call while this is active, a graph is built once
    more, as a program that looks at the clock after each kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.active = False
        self._running: dict[Recording, Span] = {}  # the graph that the thread of each recording runs

    def start(self) -> None:
        """Begin, unless somebody else observes the graphs."""
        self.active = observed.observe(self)

    def stop(self) -> None:
        """End."""
        if self.active:
            super().stop()
        self.active = False

    def entry_for(self, graph: Observed) -> int:
        """Return the address of a graph that is about to run; record that it begins."""
        if state.recording is None:
            return graph.library.entry
        address = super().entry_for(graph)
        self._running[state.recording] = state.recording.begin(f"{graph.kind} {graph.number}")
        return address

    def prepared(self, graph: Observed, began: float, ended: float) -> None:
        """Add a span for the packing of a graph's constants."""
        if state.recording is not None:
            name = f"{graph.kind} {graph.number}: constants"
            state.recording.spans.append(Span(name, int(began * 1e9), int(ended * 1e9), depth=state.recording.depth))

    def ran(self, graph: Observed, sizes: Mapping[Var, int]) -> None:
        """A graph has run."""
        if state.recording in self._running:
            span = self._running[state.recording]
            state.recording.finish(span)
            if state.recording.wish.memory:
                span.memory = graph.allocated_by(sizes)
            super().ran(graph, sizes)
            del self._running[state.recording]

    @compile_stage("profiler: build a program with clocks")
    def build(self, graph: Observed) -> Timed | None:
        """Build the program of a graph that looks at the clock, as a row of its own."""
        return super().build(graph)

    def took(self, kernels: Sequence[KernelTimes], nanoseconds: Sequence[int]) -> None:
        """Add a span for each kernel. The last one ends with the graph's run; before the first, memory is allocated."""
        recording = state.recording
        whole = self._running[recording]
        start = max(whole.start, whole.end - sum(nanoseconds))
        for kernel, spent in zip(kernels, nanoseconds, strict=True):
            name = f"{kernel.name}: {', '.join(kernel.operators)}"
            end = min(whole.end, start + spent)
            recording.spans.append(Span(name, start, end, depth=whole.depth + 1))
            start = end
