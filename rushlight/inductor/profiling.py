"""Measuring the kernels of compiled graphs while they run.

In: the graphs that are called while a `Recorder` is active. Out: per kernel its calls, time, and the bytes and floating-point
operations that it cannot do without. Such a graph runs as a program of the same kernels that looks at the clock after each; it
is built at the first call. Stage: inductor, calling.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rushlight.core.algebra import Var
from rushlight.inductor.build import BuildError, CompilerMissing, Library, build
from rushlight.inductor.codegen.kernels import Kernel
from rushlight.inductor.ir import Buffer, Call, ComputedBuffer, Load, Reduction, walk
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import evaluate

if TYPE_CHECKING:
    from rushlight.inductor.compiled import CompiledGraph


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


_graphs: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()
_lock = threading.RLock()
_active: Recorder | None = None


def enlist(graph: CompiledGraph) -> None:
    """Let recorders know of a graph."""
    with _lock:
        _graphs.add(graph)
        if _active is not None:
            graph.divert(_active)


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
        global _active
        with _lock:
            if _active is not None:
                raise RuntimeError("profile: kernels are being measured already; leave the other `with` block first")
            _active = self
            for graph in _graphs:
                graph.divert(self)

    def stop(self) -> None:
        """End."""
        global _active
        with _lock:
            _active = None
            for graph in _graphs:
                graph.divert(None)

    def entry_for(self, graph: CompiledGraph) -> int:
        """The address to call for one run of a graph; that of the graph itself where no program can measure it."""
        with _lock:
            timed = self._program(graph)
            return graph.library.entry if timed is None else timed.library.entry

    def ran(self, graph: CompiledGraph, sizes: Mapping[Var, int]) -> None:
        """Count a run for these values of the size symbols."""
        with _lock:
            timed = self._program(graph)
            if timed is None:
                return
            buffers = graph.buffers
            for number, (group, _, kernel) in enumerate(graph.program.calls):
                times = timed.kernels[number]
                times.calls += 1
                times.nanoseconds += timed.times[number] - timed.counted[number]
                timed.counted[number] = timed.times[number]
                times.bytes += bytes_of(group, buffers, sizes)
                times.flops += flops_of(group, kernel, sizes)

    def _program(self, graph: CompiledGraph) -> _Timed | None:
        source = graph.program.source
        if source not in self._timed:
            self._timed[source] = _build(graph)
        return self._timed[source]


def _build(graph: CompiledGraph) -> _Timed | None:
    try:
        library = build(graph.program.timed_source())
    except (BuildError, CompilerMissing) as error:
        warnings.warn(f"profile: a graph is not measured, because {error}", stacklevel=2)
        return None
    calls = graph.program.calls
    times = (ctypes.c_int64 * max(1, len(calls))).from_address(library.times)
    kernels = [KernelTimes(name, _operators(group), _lines(group)) for group, name, _ in calls]
    return _Timed(library, kernels, times, list(times))


def _operators(group: Group) -> tuple[str, ...]:
    names = [member.data.origin if isinstance(member, ComputedBuffer) else member.origin for member in group.members]
    return tuple(dict.fromkeys(names))


def _lines(group: Group) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line for member in group.members for line in member.lines))


def bytes_of(group: Group, buffers: Mapping[str, Buffer], sizes: Mapping[Var, int]) -> int:
    """The bytes that a kernel reads and writes, each once: of buffers that it reads in part, no more than it has reads."""
    points = evaluate(group.numel, sizes)
    total = 0
    for name in group.reads():
        layout = buffers[name].layout
        count, loads = evaluate(layout.numel, sizes), _loads(group, name)
        total += min(count, loads * points if loads else count) * layout.dtype.itemsize
    for name in group.stored & group.names:
        total += evaluate(buffers[name].layout.numel, sizes) * buffers[name].layout.dtype.itemsize
    return total


def _loads(group: Group, name: str) -> int:
    """How often the loops of a group read a buffer per element; 0 if a template does."""
    if group.template is not None and name in group.template.reads():
        return 0
    bodies = [member.data.body for member in group.members if isinstance(member, ComputedBuffer)]
    return sum(isinstance(node, Load) and node.buffer == name for body in bodies for node in walk(body))


def flops_of(group: Group, kernel: Kernel, sizes: Mapping[Var, int]) -> int:
    """The operations of a kernel: those of its product, and one for each scalar function, whatever it costs."""
    total = evaluate(kernel.work, sizes) if group.template is not None else 0
    for member in group.members:
        if isinstance(member, ComputedBuffer):
            loop = member.data
            each = sum(isinstance(node, Call) and node.name != "cast" for node in walk(loop.body))
            count = evaluate(loop.numel, sizes)
            if isinstance(loop, Reduction):
                each, count = each + 1, count * evaluate(loop.reduction_numel, sizes)
            total += each * count
    return total
