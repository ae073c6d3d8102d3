"""When compiled graphs ran, and what their kernels took, while a recording goes on.

In: the calls of all compiled graphs. Out: one `Run` for each of them, and the times of each graph's kernels.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.inductor.profiling import Recorder

if TYPE_CHECKING:
    from rushlight.core.algebra import Var
    from rushlight.inductor.codegen.cpp.program import Program
    from rushlight.inductor.graph import LoweredGraph
    from rushlight.inductor.observed import Observed

MAX_RUNS = 20_000  # a page shows no more calls than that


@dataclass
class Total:
    """The runs of one graph: how many there were, and their seconds together."""

    calls: int = 0
    seconds: float = 0.0


@dataclass
class InterpretedTotal:
    """The runs of a function by an interpreter: their number, their seconds together, and those spent in compiled graphs that
    they called. `unit` is the function's unit, if it has one."""

    name: str
    unit: int | None
    calls: int = 0
    seconds: float = 0.0
    native: float = 0.0


class InterpretedRuns:
    """Sums up the runs of functions by an interpreter. A run within another one belongs to that."""

    def __init__(self, clock: GraphClock) -> None:
        self.totals: dict[tuple[str, int | None], InterpretedTotal] = {}
        self._clock = clock
        self._local = threading.local()
        self._counting = threading.Lock()

    @contextmanager
    def run(self, name: str, unit: int | None) -> Iterator[None]:
        """Return a context that is one run of a function."""
        if getattr(self._local, "is_running", False):
            yield
            return
        self._local.is_running, began, native = True, time.perf_counter(), self._clock.native_seconds()
        try:
            yield
        finally:
            self._local.is_running = False
            with self._counting:
                total = self.totals.setdefault((name, unit), InterpretedTotal(name, unit))
                total.calls += 1
                total.seconds += time.perf_counter() - began
                total.native += self._clock.native_seconds() - native


@dataclass(frozen=True)
class Run:
    """One run of a compiled graph: its number, and `time.perf_counter` when it began and ended."""

    graph: int
    began: float
    ended: float


class GraphClock(Recorder):
    """Measures kernels as `torch.compiler.profile` does, and notes when each graph ran. A profile that the program makes itself
    goes first."""

    gives_way = True

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []  # the first MAX_RUNS runs
        self.totals: dict[int, Total] = {}  # the sums over all runs, by the number of the graph
        self.left_out = 0
        self.parts: dict[int, list[tuple[LoweredGraph, Program]]] = {}  # keys: the numbers of the graphs that ran
        self._local = threading.local()
        self._counting = threading.Lock()

    def native_seconds(self) -> float:
        """Return the time that this thread has spent in compiled graphs."""
        return getattr(self._local, "native", 0.0)

    def entry_for(self, graph: Observed) -> int:
        """The address to call for one run of a graph, which begins now."""
        address = super().entry_for(graph)
        self._local.began = time.perf_counter()
        return address

    def ran(self, graph: Observed, sizes: Mapping[Var, int]) -> None:
        """Note a run, which ends now."""
        ended = time.perf_counter()
        self._local.native = self.native_seconds() + ended - self._local.began
        with self._counting:
            if graph.number not in self.parts:
                self.parts[graph.number] = graph.parts()
            self._count(Run(graph.number, self._local.began, ended))
        super().ran(graph, sizes)

    def _count(self, run: Run) -> None:
        total = self.totals.setdefault(run.graph, Total())
        total.calls += 1
        total.seconds += run.ended - run.began
        if len(self.runs) < MAX_RUNS:
            self.runs.append(run)
        else:
            self.left_out += 1
