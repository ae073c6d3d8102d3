"""When compiled graphs ran, and what their kernels took, while a recording goes on.

In: the calls of all compiled graphs. Out: one `Run` for each of them, and the times of each graph's kernels.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.inductor.profiling import Recorder

if TYPE_CHECKING:
    from rushlight.core.algebra import Var
    from rushlight.inductor.codegen.program import Program
    from rushlight.inductor.graph import LoweredGraph
    from rushlight.inductor.observed import Observed

MAX_RUNS = 20_000  # a page shows no more calls than that


@dataclass
class Total:
    """The runs of one graph: how many there were, and their seconds together."""

    calls: int = 0
    seconds: float = 0.0


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

    def entry_for(self, graph: Observed) -> int:
        """The address to call for one run of a graph, which begins now."""
        address = super().entry_for(graph)
        self._local.began = time.perf_counter()
        return address

    def ran(self, graph: Observed, sizes: Mapping[Var, int]) -> None:
        """Note a run, which ends now."""
        ended = time.perf_counter()
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
