"""Kernel profiling: measures the kernels of compiled graphs while they run.

In: the graphs that are called while a `Recorder` is active. Out: for each kernel its calls, time, and minimal bytes and
floating-point operations. A measured graph runs as a second program with the same kernels, which reads the clock after each; it
is built at the first call. Stage: inductor, calling.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rushlight.core.lazy_module import LazyModule
from rushlight.inductor import observed
from rushlight.inductor.build import BuildError, CompilerMissing, Library, build

if TYPE_CHECKING:
    from rushlight.core.algebra import Var
    from rushlight.inductor.codegen.program import Program
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


@dataclass
class _Timed:
    """A program that measures itself. `counted` holds the kernels' counters at the last reading."""

    library: Library
    times: ctypes.Array
    counted: list[int] = field(default_factory=list)

    def passed(self) -> list[int]:
        """Return the nanoseconds of each kernel since the last reading."""
        now = list(self.times)
        spent = [after - before for after, before in zip(now, self.counted, strict=True)]
        self.counted = now
        return spent


_lock = threading.RLock()


class Recorder:
    """Collects the times of all graphs that run between `start` and `stop`. One at a time."""

    gives_way = False

    def __init__(self):
        self._timed: dict[str, _Timed | None] = {}  # by source: graphs with equal sources share a library
        self._work: dict[tuple[int, tuple[tuple[Var, int], ...]], list[tuple[int, int]]] = {}  # (graph, sizes) -> bytes, flops
        self._of_graphs: dict[int, tuple[str, list[KernelTimes]]] = {}  # graph number -> (source, kernels)

    @property
    def kernels(self) -> list[KernelTimes]:
        """The kernels that ran; graphs with equal sources share them."""
        with _lock:
            merged: dict[str, list[KernelTimes]] = {}
            for source, kernels in self._of_graphs.values():
                same = merged.get(source)
                merged[source] = list(kernels) if same is None else [one + two for one, two in zip(same, kernels, strict=True)]
            return [kernel for kernels in merged.values() for kernel in kernels if kernel.calls]

    def kernels_of(self, number: int) -> list[KernelTimes]:
        """Return the kernels of a graph in call order; empty if it has not run or is not measured."""
        with _lock:
            return self._of_graphs.get(number, ("", []))[1]

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
            timed = self._measuring_program(graph)
            return graph.library.entry if timed is None else timed.library.entry

    def ran(self, graph: Observed, sizes: Mapping[Var, int]) -> None:
        """Count a run for these values of the size symbols."""
        with _lock:
            timed = self._measuring_program(graph)
            if timed is None:
                return
            _, program = graph.details()
            if graph.number not in self._of_graphs:
                made = [KernelTimes(name, group.origins(), group.lines()) for group, name, _ in program.calls]
                self._of_graphs[graph.number] = program.source, made
            _, kernels = self._of_graphs[graph.number]
            passed = timed.passed()
            self.took(kernels, passed)
            for times, spent, (nbytes, flops) in zip(kernels, passed, self._work_of(graph, sizes), strict=True):
                times.calls += 1
                times.nanoseconds += spent
                times.bytes += nbytes
                times.flops += flops

    def _work_of(self, graph: Observed, sizes: Mapping[Var, int]) -> list[tuple[int, int]]:
        """Return the bytes and operations of each kernel for these sizes."""
        key = graph.number, tuple(sizes.items())
        found = self._work.get(key)
        if found is None:
            lowered, program = graph.details()
            buffers = {buffer.name: buffer for buffer in lowered.buffers}
            found = [(work.bytes_of(group, buffers, sizes), work.flops_of(group, kernel, sizes))
                     for group, _, kernel in program.calls]  # fmt: skip
            self._work[key] = found
        return found

    def took(self, kernels: Sequence[KernelTimes], nanoseconds: Sequence[int]) -> None:
        """Called after each run with the kernels' times."""

    def _measuring_program(self, graph: Observed) -> _Timed | None:
        _, program = graph.details()
        if program.source not in self._timed:
            self._timed[program.source] = _build_measuring_program(program, graph.library)
        return self._timed[program.source]


def _build_measuring_program(program: Program, library: Library) -> _Timed | None:
    """Return the self-measuring program of a graph: its own library if that measures, else a new one."""
    try:
        library = library if library.times is not None else build(program.timed_source())
    except (BuildError, CompilerMissing) as error:
        warnings.warn(f"profile: a graph is not measured, because {error}", stacklevel=2)
        return None
    times = (ctypes.c_int64 * len(program.calls)).from_address(library.times)
    return _Timed(library, times, list(times))
