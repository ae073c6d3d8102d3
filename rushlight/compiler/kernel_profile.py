"""`torch.compiler.profile`: the cost of each kernel of compiled code, and how close it is to the machine's peak.

In: a `with` block that runs compiled code. Out: a record per kernel, which prints as a table.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import float32
from rushlight.inductor.profiling import KernelTimes, Recorder
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
_COPIED_ELEMENTS = 1 << 24  # float32 elements of the copy that measures bandwidth: 64 MB exceed all caches
_MATRIX_SIZE = 1024  # rows and columns of the product that measures peak speed
_lock = threading.Lock()


@dataclass(frozen=True)
class Peaks:
    """This machine's peak performance with the current number of threads: bytes and floating-point operations per second."""

    bandwidth: float
    flops: float


@functools.cache
def measured_peaks() -> Peaks:
    """Measure the bandwidth of a copy into touched memory (reads plus writes), and the speed of a large matrix product."""
    with no_grad():
        source, target = (aten.full.default([_COPIED_ELEMENTS], 1.0, dtype=float32) for _ in range(2))
        copying = _best_time(lambda: aten.copy_.default(target, source))
        matrix = aten.full.default([_MATRIX_SIZE, _MATRIX_SIZE], 1.0, dtype=float32)
        multiplying = _best_time(lambda: aten.mm.default(matrix, matrix))
    return Peaks(2 * 4 * _COPIED_ELEMENTS / copying, 2 * _MATRIX_SIZE**3 / multiplying)


def _best_time(function: Callable[[], object]) -> float:
    """Return the shortest time of six calls."""
    times = []
    for _ in range(6):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


@dataclass(frozen=True)
class KernelProfile:
    """One kernel: its calls, and their total seconds, bytes that have to be read and written, and operations.

    `share` is the time that the machine would need at peak for these bytes or operations, whichever takes longer, divided by
    the measured time. It exceeds 1 if the inputs are in a cache. `lines` are the user's source lines of the kernel.
    """

    name: str
    operators: tuple[str, ...]
    lines: tuple[str, ...]
    calls: int
    seconds: float
    bytes: int
    flops: int
    share: float


class profile:
    """Context manager: measures the kernels of the compiled code that runs in its block, on all threads.

        with torch.compiler.profile() as p:
            model(x)
        print(p)

    `p.kernels` are the records, the one that took longest first; `p.peaks` what the machine can do, as measured. The first run
    of a graph in the block builds a program that looks at the clock after each kernel; that is not counted. RuntimeError when
    blocks are nested.
    """

    def __init__(self):
        self._recorder = Recorder()

    def __enter__(self) -> profile:
        self._recorder.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._recorder.stop()

    @property
    def peaks(self) -> Peaks:
        """Return the machine's peak performance, measured at the first use in a process."""
        with _lock:
            return measured_peaks()

    @property
    def kernels(self) -> list[KernelProfile]:
        """Return the kernels that have run so far, the slowest first."""
        peaks = self.peaks
        return sorted((_profile_kernel(times, peaks) for times in self._recorder.kernels), key=lambda kernel: -kernel.seconds)

    def __str__(self) -> str:
        kernels, peaks = self.kernels, self.peaks
        total = sum(kernel.seconds for kernel in kernels)
        rows = [_HEAD, *(_format_row(kernel, total) for kernel in kernels)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
        lines = ["  ".join([*map(str.rjust, row[:-1], widths[:-1]), row[-1]]) for row in rows]
        lines.append(f"{total * 1e3:.3f} ms in {len(kernels)} kernels; a copy moves {peaks.bandwidth / 1e9:.1f} GB/s, "
                     f"a product does {peaks.flops / 1e9:.0f} GFLOP/s")  # fmt: skip
        return "\n".join(lines)


def _profile_kernel(times: KernelTimes, peaks: Peaks) -> KernelProfile:
    """Convert a kernel's raw counters to a record."""
    seconds = times.nanoseconds * 1e-9
    share = share_of(times, peaks)
    return KernelProfile(times.name, times.operators, times.lines, times.calls, seconds, times.bytes, times.flops, share)


def share_of(times: KernelTimes, peaks: Peaks) -> float:
    """Return the time that the machine needs at its best for a kernel's bytes or operations, divided by the kernel's; 0 if it
    never ran."""
    needed = max(times.bytes / peaks.bandwidth, times.flops / peaks.flops)
    return needed / (times.nanoseconds * 1e-9) if times.nanoseconds else 0.0


_HEAD = ("kernel", "calls", "time ms", "of all", "us/call", "MB", "GB/s", "GFLOP/s", "of peak", "what and where")


def _format_row(kernel: KernelProfile, total: float) -> tuple[str, ...]:
    """Format a kernel's record as a row of the printed table."""
    per_second = 1 / kernel.seconds if kernel.seconds else 0.0
    return (
        kernel.name, str(kernel.calls), f"{kernel.seconds * 1e3:.3f}", f"{kernel.seconds / total:.0%}" if total else "",
        f"{kernel.seconds / kernel.calls * 1e6:.1f}", f"{kernel.bytes / 1e6:.2f}", f"{kernel.bytes * per_second / 1e9:.1f}",
        f"{kernel.flops * per_second / 1e9:.1f}", f"{kernel.share:.0%}", _source(kernel),
    )  # fmt: skip


def _source(kernel: KernelProfile) -> str:
    more = f" and {len(kernel.lines) - 1} more lines" if len(kernel.lines) > 1 else ""
    return "; ".join(filter(None, [", ".join(kernel.operators), *kernel.lines[-1:]])) + more
