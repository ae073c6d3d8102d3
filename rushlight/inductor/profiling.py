"""Measuring the kernels of compiled graphs while they run.

In: the graphs that are called while a `Recorder` is active. Out: per kernel its calls, time, and the bytes and floating-point
operations that it cannot do without. Such a graph runs as a program of the same kernels that looks at the clock after each; it
is built at the first call. Stage: inductor, calling.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Mapping
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
    """One kernel of one program, and the sums over its calls. `lines` are the user's, as `path:line in function: code`."""

    name: str
    operators: tuple[str, ...]
    lines: tuple[str, ...]
    calls: int = 0
    nanoseconds: int = 0
    bytes: int = 0
    flops: int = 0


@dataclass
class _Timed:
    """A program that measures itself. `counted` is what its kernels had taken when that was last looked at."""

    library: Library
    kernels: list[KernelTimes]
    times: ctypes.Array
    counted: list[int] = field(default_factory=list)


_lock = threading.RLock()


class Recorder:
    """Collects the times of all graphs that run between `start` and `stop`. One at a time."""

    def __init__(self):
        self._timed: dict[str, _Timed | None] = {}  # by source: graphs of one text share their library

    @property
    def kernels(self) -> list[KernelTimes]:
        """The kernels that ran."""
        with _lock:
            programs = [timed for timed in self._timed.values() if timed is not None]
            return [kernel for timed in programs for kernel in timed.kernels if kernel.calls]

    def start(self) -> None:
        """Begin; RuntimeError while another recorder is active."""
        if not observed.observe(self):
            raise RuntimeError("profile: kernels are being measured already; leave the other `with` block first")

    def stop(self) -> None:
        """End."""
        observed.leave_alone()

    def entry_for(self, graph: Observed) -> int:
        """The address to call for one run of a graph; that of the graph itself where no program can measure it."""
        with _lock:
            timed = self._program(graph)
            return graph.library.entry if timed is None else timed.library.entry

    def ran(self, graph: Observed, sizes: Mapping[Var, int]) -> None:
        """Count a run for these values of the size symbols."""
        with _lock:
            timed = self._program(graph)
            if timed is None:
                return
            lowered, program = graph.details()
            buffers = {buffer.name: buffer for buffer in lowered.buffers}
            for number, (group, _, kernel) in enumerate(program.calls):
                times = timed.kernels[number]
                times.calls += 1
                times.nanoseconds += timed.times[number] - timed.counted[number]
                timed.counted[number] = timed.times[number]
                times.bytes += work.bytes_of(group, buffers, sizes)
                times.flops += work.flops_of(group, kernel, sizes)

    def _program(self, graph: Observed) -> _Timed | None:
        _, program = graph.details()
        if program.source not in self._timed:
            self._timed[program.source] = _build(program)
        return self._timed[program.source]


def _build(program: Program) -> _Timed | None:
    try:
        library = build(program.timed_source())
    except (BuildError, CompilerMissing) as error:
        warnings.warn(f"profile: a graph is not measured, because {error}", stacklevel=2)
        return None
    calls = program.calls
    times = (ctypes.c_int64 * max(1, len(calls))).from_address(library.times)
    kernels = [KernelTimes(name, work.operators_of(group), work.lines_of(group)) for group, name, _ in calls]
    return _Timed(library, kernels, times, list(times))
