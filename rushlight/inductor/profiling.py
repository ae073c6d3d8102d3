"""Kernel profiling: measures the kernels of compiled graphs while they run.

In: the graphs that are called while a `Recorder` is active. Out: for each kernel its calls, time, and minimal bytes and
floating-point operations. A measured graph runs as a second program with the same kernels, which reads the clock after each; it
is built at the first call. Stage: inductor, calling.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.core.lazy_module import LazyModule
from rushlight.inductor import observed
from rushlight.inductor.build import BuildError, CompilerMissing, Library, build

if TYPE_CHECKING:
    from rushlight.core.algebra import Var
    from rushlight.inductor.codegen.cpp.program import Program
    from rushlight.inductor.graph import LoweredGraph
    from rushlight.inductor.observed import Observed

work = LazyModule("rushlight.inductor.work")


@dataclass
class KernelTimes:
    """The totals of one kernel of one program. `lines` are the user's, as `path:line in function: code`."""

    name: str
    operators: tuple[str, ...]
    lines: tuple[str, ...]
    calls: int = 0
    nanoseconds: int = 0
    bytes: int = 0
    flops: int = 0

    def __add__(self, other: KernelTimes) -> KernelTimes:
        sums = (getattr(self, name) + getattr(other, name) for name in ("calls", "nanoseconds", "bytes", "flops"))
        return KernelTimes(self.name, self.operators, self.lines, *sums)


class Timed:
    """A library that measures itself. `lengths` are the numbers of counters of its parts."""

    def __init__(self, library: Library, lengths: Sequence[int]):
        self.library = library
        self._lengths = lengths
        self._counters = (ctypes.c_int64 * sum(lengths)).from_address(library.times) if lengths else []
        self._read = list(self._counters)  # as of the last reading

    def passed(self) -> list[tuple[list[int], int]]:
        """Return for each part the nanoseconds of its kernels since the last reading, and how often it ran."""
        now = list(self._counters)
        spent = [after - before for after, before in zip(now, self._read, strict=True)]
        self._read = now
        ends = itertools.accumulate(self._lengths)
        return [(spent[end - length : end - 1], spent[end - 1]) for end, length in zip(ends, self._lengths, strict=True)]


_lock = threading.RLock()


class Recorder:
    """Collects the times of all graphs that run between `start` and `stop`. One at a time."""

    gives_way = False

    def __init__(self):
        self._timed: dict[str, Timed | None] = {}  # by source: graphs with equal sources share a library
        self._work: dict[tuple[int, tuple[tuple[Var, int], ...]], list[list[tuple[int, int]]]] = {}  # see `_work_of`
        self._of_graphs: dict[int, tuple[str, list[list[KernelTimes]]]] = {}  # graph number -> (source, kernels of each part)

    @property
    def kernels(self) -> list[KernelTimes]:
        """The kernels that ran; graphs with equal sources share them."""
        with _lock:
            merged: dict[str, list[KernelTimes]] = {}
            for source, parts in self._of_graphs.values():
                kernels, same = [kernel for part in parts for kernel in part], merged.get(source)
                merged[source] = kernels if same is None else [one + two for one, two in zip(same, kernels, strict=True)]
            return [kernel for kernels in merged.values() for kernel in kernels if kernel.calls]

    def kernels_of(self, number: int, part: int = 0) -> list[KernelTimes]:
        """Return the kernels of a part of a graph in call order; empty if it has not run or is not measured."""
        with _lock:
            _, parts = self._of_graphs.get(number, ("", []))
            return parts[part] if parts else []

    def start(self) -> None:
        """Start recording; RuntimeError if another recorder is active."""
        if not observed.observe(self):
            raise RuntimeError("profile: kernels are being measured already; leave the other `with` block first")

    def stop(self) -> None:
        """Stop recording."""
        observed.leave_alone(self)

    def entry_for(self, graph: Observed) -> int:
        """Return the address to call for one run of a graph; the graph's own if no measuring program can be built."""
        with _lock:
            timed = self._timed_of(graph)
            return graph.library.entry if timed is None else timed.library.entry

    def ran(self, graph: Observed, sizes: Mapping[Var, int]) -> None:
        """Count a run for these values of the size symbols."""
        with _lock:
            timed = self._timed_of(graph)
            if timed is None:
                return
            if graph.number not in self._of_graphs:
                made = [[KernelTimes(name, group.origins(), group.lines()) for group, name, _ in program.calls]
                        for _, program in graph.parts()]  # fmt: skip
                self._of_graphs[graph.number] = graph.source, made
            _, parts = self._of_graphs[graph.number]
            passed = timed.passed()
            ran = [(kernels, spent) for kernels, (spent, runs) in zip(parts, passed, strict=True) if runs]
            self.took([kernel for kernels, _ in ran for kernel in kernels], [each for _, spent in ran for each in spent])
            for kernels, (spent, runs), work_of_part in zip(parts, passed, self._work_of(graph, sizes), strict=True):
                for times, nanoseconds, (nbytes, flops) in zip(kernels, spent, work_of_part, strict=True):
                    times.calls += runs
                    times.nanoseconds += nanoseconds
                    times.bytes += nbytes * runs
                    times.flops += flops * runs

    def resumed(self) -> None:
        """Leave out what libraries counted for another recorder."""
        with _lock:
            for timed in filter(None, self._timed.values()):
                timed.passed()

    def _work_of(self, graph: Observed, sizes: Mapping[Var, int]) -> list[list[tuple[int, int]]]:
        """Return for each part the bytes and operations of each kernel for these sizes."""
        key = graph.number, tuple(sizes.items())
        found = self._work.get(key)
        if found is None:
            found = self._work[key] = [_work_of_part(lowered, program, sizes) for lowered, program in graph.parts()]
        return found

    def took(self, kernels: Sequence[KernelTimes], nanoseconds: Sequence[int]) -> None:
        """Called after each run with the kernels' times."""

    def _timed_of(self, graph: Observed) -> Timed | None:
        source = graph.source
        if source not in self._timed:
            self._timed[source] = self.build(graph)
        return self._timed[source]

    def build(self, graph: Observed) -> Timed | None:
        """Return the self-measuring library of a graph: its own if that measures, else a new one; None if none can be built."""
        lengths = [program.times for _, program in graph.parts()]
        if graph.library.times is not None or not lengths:
            return Timed(graph.library, lengths)
        try:
            return Timed(build(graph.timed_source()), lengths)
        except (BuildError, CompilerMissing) as error:
            warnings.warn(f"profile: a graph is not measured, because {error}", stacklevel=2)
            return None


def _work_of_part(lowered: LoweredGraph, program: Program, sizes: Mapping[Var, int]) -> list[tuple[int, int]]:
    buffers = {buffer.name: buffer for buffer in lowered.buffers}
    return [(work.bytes_of(group, buffers, sizes), work.flops_of(group, kernel, sizes)) for group, _, kernel in program.calls]
