"""The interface to GPUs: what the library asks of a driver, and the choice of one.

There are two drivers: NVIDIA's, by `libcuda.py`, and a stand-in for tests without a GPU, by `stand_in.py`. Addresses, streams,
events and graphs are ints, as in CUDA. Copies, fills and launches are put on a stream and run in its order; the host waits only
where a method says so. `active_driver()` looks for a GPU at its first call, not earlier.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rushlight.core.lazy_module import LazyModule, optional

libcuda, stand_in = map(LazyModule, ("rushlight.cuda.libcuda", "rushlight.cuda.stand_in"))

DEFAULT_STREAM = 0
VARIABLE = "RUSHLIGHT_CUDA_DRIVER"


class DriverError(RuntimeError):
    """A call of the driver failed; `status` is the driver's name of the error."""

    def __init__(self, call: str, status: str, text: str = ""):
        super().__init__(f"CUDA error: {text or status} ({call}: {status})")
        self.status = status


class DriverOutOfMemory(DriverError):
    """The device has not enough free memory."""


@dataclass(frozen=True)
class DeviceProperties:
    """What a device is. Memory is in bytes, clocks are in kHz."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int = 32
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    shared_memory_per_block_optin: int = 49152
    shared_memory_per_multiprocessor: int = 65536
    L2_cache_size: int = 0
    clock_rate: int = 0
    memory_clock_rate: int = 0
    memory_bus_width: int = 0
    pci_bus_id: int = 0
    pci_device_id: int = 0
    is_integrated: bool = False
    is_multi_gpu_board: bool = False


@dataclass(frozen=True)
class KernelImage:
    """A kernel to load: a function that gives its cubin, the kernel's name in it, and one that gives the kernel as a Python
    function, for a driver that interprets it. `types` are the parameters' types ("*fp32", "i64")."""

    name: str
    types: Sequence[str]
    cubin: Callable[[int], Cubin]
    interpreted: Callable[[], Callable]


@dataclass(frozen=True)
class Cubin:
    """A compiled kernel: its code, its entry's name, bytes of shared memory, threads of a program, and bytes of scratch memory
    for each program."""

    code: bytes
    entry: str
    shared: int
    threads: int
    scratch: int = 0


class Kernel(Protocol):
    """A loaded kernel."""

    def launch(self, stream: int, grid: tuple[int, int, int], arguments: Sequence[int], constants: dict[str, int]) -> None:
        """Put a launch on a stream."""


class Driver(Protocol):
    """The devices of one kind of driver. Methods without a device argument act on the current device (see `use`)."""

    def device_count(self) -> int:
        """Return the number of devices; 0 if there is no driver."""

    def properties(self, device: int) -> DeviceProperties:
        """Return what a device is."""

    def use(self, device: int) -> None:
        """Make a device this thread's current one."""

    def memory_info(self) -> tuple[int, int]:
        """Return the free and the total bytes of the device."""

    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory, aligned to 512 bytes; DriverOutOfMemory if there is too little."""

    def free(self, address: int) -> None:
        """Release memory after all work that was put on streams before."""

    def allocate_host(self, nbytes: int) -> int:
        """Return the address of page-locked host memory."""

    def free_host(self, address: int) -> None:
        """Release page-locked host memory."""

    def copy_to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy from host memory. The source of page-locked memory is read later, other memory before this returns."""

    def copy_to_host(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy to host memory. Page-locked memory is written later, other memory before this returns."""

    def copy_on_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy between devices' memory."""

    def fill(self, target: int, byte: int, nbytes: int, stream: int) -> None:
        """Set bytes."""

    def fill_word(self, target: int, word: int, stream: int, count: int = 1) -> None:
        """Write four bytes, `count` times one after the other. The word is part of the work: it needs no host memory."""

    def create_stream(self, priority: int) -> int:
        """Return a new stream, which does not wait for the default stream."""

    def is_stream_done(self, stream: int) -> bool:
        """Return whether all work of a stream is done."""

    def wait_for_stream(self, stream: int) -> None:
        """Let the host wait for a stream's work."""

    def wait_for_device(self) -> None:
        """Let the host wait for all work of the device."""

    def create_event(self, timed: bool) -> int:
        """Return a new event."""

    def destroy_event(self, event: int) -> None:
        """Release an event."""

    def record_event(self, event: int, stream: int) -> None:
        """Let an event stand for the work that is on a stream now."""

    def is_event_done(self, event: int) -> bool:
        """Return whether the work that an event stands for is done."""

    def wait_for_event(self, event: int) -> None:
        """Let the host wait for an event."""

    def stream_waits_for(self, stream: int, event: int) -> None:
        """Let the later work of a stream wait for an event."""

    def milliseconds(self, first: int, last: int) -> float:
        """Return the time between two timed events that are done."""

    def load(self, image: KernelImage) -> Kernel:
        """Load a kernel to the current device."""

    def begin_capture(self, stream: int) -> None:
        """Collect the later work of a stream, and of streams that wait for it, in a graph instead of doing it."""

    def end_capture(self, stream: int) -> int:
        """Return the graph of the work that was collected."""

    def is_capturing(self, stream: int) -> bool:
        """Return whether a stream's work is being collected."""

    def instantiate(self, graph: int) -> int:
        """Return an executable form of a graph, and release the graph."""

    def launch_graph(self, executable: int, stream: int) -> None:
        """Put the work of a graph on a stream."""

    def destroy_executable(self, executable: int) -> None:
        """Release an executable graph."""


class NoDriver:
    """The driver of a machine without a GPU. `reason` says what is missing."""

    def __init__(self, reason: str = ""):
        self.reason = reason

    def device_count(self) -> int:
        """Return 0."""
        return 0


_chosen: list[Driver] = []


def active_driver() -> Driver:
    """Return the process's driver. The first call looks for it."""
    if not _chosen:
        _chosen.append(_find())
    return _chosen[0]


def use_driver(chosen: Driver | None) -> None:
    """Use this driver from now on, for tests; None looks for one again. Tensors of the former driver must be gone."""
    _chosen[:] = [] if chosen is None else [chosen]


def _find() -> Driver:
    name = os.environ.get(VARIABLE, "")
    if name == "interpreter":
        return stand_in.StandIn()
    if name not in ("", "libcuda"):
        raise ValueError(f"{VARIABLE}={name!r}: expected 'libcuda' or 'interpreter'")
    if optional("triton") is None:
        return NoDriver('Triton is not installed; run pip install "rushlight[cuda]"')
    return libcuda.find() or NoDriver("libcuda.so.1, a part of NVIDIA's driver, finds no GPU or is not installed")
