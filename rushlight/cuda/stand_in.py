"""A driver for tests without a GPU: device memory is host memory, and kernels run in Triton's interpreter.

Work that is put on a stream is done when the host waits for it, not earlier, so that a missing wait shows. Device memory is
closed to the process except while such work runs: code that touches it by mistake ends in a segmentation fault. Copies and
kernels refuse addresses outside memory that is allocated now. `log` lists what was put on streams, in order.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import itertools
import mmap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from rushlight.cuda.driver import DEFAULT_STREAM, DeviceProperties, DriverError, DriverOutOfMemory, KernelImage

_CLOSED, _OPEN = 0, mmap.PROT_READ | mmap.PROT_WRITE
_WORD = 4
Work = Callable[[], None]


@functools.cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library


@dataclass
class _Stream:
    """A stream: work that is not done yet, the number of pieces of work that are done, and the graph that collects its work."""

    waiting: list[Work] = field(default_factory=list)
    done: int = 0
    graph: int | None = None

    @property
    def end(self) -> int:
        return self.done + len(self.waiting)


@dataclass
class _Event:
    """An event: the stream and the position that it stands for, the time when it was reached, and the graph that holds it."""

    stream: int | None = None
    position: int = 0
    graph: int | None = None
    time: float = 0.0


class StandIn:
    """Devices in host memory, of `memory` bytes each."""

    def __init__(self, devices: int = 2, memory: int = 1 << 30, capability: tuple[int, int] = (8, 0)):
        self.log: list[tuple] = []
        self._count, self._memory, self._capability = devices, memory, capability
        self._sizes: dict[int, tuple[int, int]] = {}  # address -> bytes, device
        self._starts: list[int] = []
        self._host: dict[int, tuple[int, object]] = {}
        self._streams: dict[int, _Stream] = {DEFAULT_STREAM: _Stream()}
        self._events: dict[int, _Event] = {}
        self._graphs: dict[int, list[Work]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._thread = threading.local()
        self._opened = 0

    # Devices

    def device_count(self) -> int:
        """Return the number of devices."""
        return self._count

    def properties(self, device: int) -> DeviceProperties:
        """Return what a device is."""
        return DeviceProperties("Triton's interpreter", *self._capability, self._memory, 1)

    def use(self, device: int) -> None:
        """Make a device this thread's current one."""
        if not 0 <= device < self._count:
            raise DriverError("cuCtxSetCurrent", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")
        self._thread.device = device

    def _current(self) -> int:
        return getattr(self._thread, "device", 0)

    # Memory

    def memory_info(self) -> tuple[int, int]:
        """Return the free and the total bytes of the device."""
        return self._memory - sum(size for size, device in self._sizes.values() if device == self._current()), self._memory

    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory."""
        with self._lock:
            if nbytes > self.memory_info()[0]:
                raise DriverOutOfMemory("cuMemAlloc_v2", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            address = _libc().mmap(None, max(nbytes, 1), _OPEN if self._opened else _CLOSED, flags, -1, 0)
            self._sizes[address] = nbytes, self._current()
            bisect.insort(self._starts, address)
            return address

    def free(self, address: int) -> None:
        """Release memory after all work that was put on streams before."""
        with self._lock:
            if address not in self._sizes:
                raise DriverError("cuMemFree_v2", "CUDA_ERROR_INVALID_VALUE", f"{address:#x} is no allocated memory")
            self.wait_for_device()
            nbytes, _ = self._sizes.pop(address)
            self._starts.remove(address)
            _libc().munmap(address, max(nbytes, 1))

    def allocate_host(self, nbytes: int) -> int:
        """Return the address of host memory that counts as page-locked."""
        memory = (ctypes.c_byte * max(nbytes, 1))()
        address = ctypes.addressof(memory)
        self._host[address] = nbytes, memory
        return address

    def free_host(self, address: int) -> None:
        """Release page-locked host memory."""
        if address not in self._host:
            raise DriverError("cuMemFreeHost", "CUDA_ERROR_INVALID_VALUE", f"{address:#x} is no page-locked memory")
        self.wait_for_device()
        del self._host[address]

    @property
    def allocated(self) -> int:
        """The bytes of device memory that are allocated now."""
        return sum(size for size, _ in self._sizes.values())

    @property
    def allocated_host(self) -> int:
        """The bytes of page-locked memory that are allocated now."""
        return sum(size for size, _ in self._host.values())

    def check(self, call: str, address: int, nbytes: int) -> None:
        """Raise DriverError unless memory on a device is allocated."""
        place = bisect.bisect_right(self._starts, address) - 1
        start = self._starts[place] if place >= 0 else 0
        if place < 0 or address + nbytes > start + self._sizes[start][0]:
            text = f"an illegal memory access was encountered: {nbytes} bytes at {address:#x}"
            raise DriverError(call, "CUDA_ERROR_ILLEGAL_ADDRESS", text)

    def _is_locked(self, address: int, nbytes: int) -> bool:
        return any(start <= address and address + nbytes <= start + size for start, (size, _) in self._host.items())

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open the devices' memory to the process."""
        self._opened += 1
        self._protect(_OPEN)
        try:
            yield
        finally:
            self._opened -= 1
            if not self._opened:
                self._protect(_CLOSED)

    def _protect(self, how: int) -> None:
        for address, (nbytes, _) in self._sizes.items():
            _libc().mprotect(address, max(nbytes, 1), how)

    # Copies

    def copy_to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy from host memory."""
        self.check("cuMemcpyHtoDAsync_v2", target, nbytes)
        if self._is_locked(source, nbytes):
            self._put(stream, lambda: self._move(target, source, nbytes), "copy_to_device", target, nbytes)
        else:
            staged = ctypes.string_at(source, nbytes)
            self._put(stream, lambda: self._move(target, staged, nbytes), "copy_to_device", target, nbytes)

    def copy_to_host(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy to host memory."""
        self.check("cuMemcpyDtoHAsync_v2", source, nbytes)
        self._put(stream, lambda: self._move(target, source, nbytes), "copy_to_host", source, nbytes)
        if not self._is_locked(target, nbytes):
            self.wait_for_stream(stream)

    def copy_on_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy between devices' memory."""
        self.check("cuMemcpyAsync", target, nbytes)
        self.check("cuMemcpyAsync", source, nbytes)
        self._put(stream, lambda: self._move(target, source, nbytes), "copy_on_device", target, nbytes)

    def fill(self, target: int, byte: int, nbytes: int, stream: int) -> None:
        """Set bytes."""
        self.check("cuMemsetD8Async", target, nbytes)
        self._put(stream, lambda: self._set(target, byte, nbytes), "fill", target, nbytes)

    def fill_word(self, target: int, word: int, stream: int, count: int = 1) -> None:
        """Write four bytes, `count` times one after the other."""
        self.check("cuMemsetD32Async", target, _WORD * count)
        bits = word.to_bytes(_WORD, "little") * count
        self._put(stream, lambda: self._move(target, bits, len(bits)), "fill_word", target)

    def _move(self, target: int, source: int | bytes, nbytes: int) -> None:
        with self.opened():
            ctypes.memmove(target, source, nbytes)

    def _set(self, target: int, byte: int, nbytes: int) -> None:
        with self.opened():
            ctypes.memset(target, byte, nbytes)

    # Streams and events

    def _stream(self, stream: int) -> _Stream:
        found = self._streams.get(stream)
        if found is None:
            raise DriverError("cuStream", "CUDA_ERROR_INVALID_HANDLE", f"there is no stream {stream}")
        return found

    def _put(self, stream: int, work: Work, name: str, *about: object) -> None:
        with self._lock:
            found = self._stream(stream)
            self.log.append((name, stream, *about))
            (found.waiting if found.graph is None else self._graphs[found.graph]).append(work)

    def _run(self, stream: int, position: int) -> None:
        """Do the work of a stream up to a position."""
        with self._lock:
            found = self._stream(stream)
            while found.done < position and found.waiting:
                work = found.waiting.pop(0)
                found.done += 1
                work()

    def _catch_up(self, stream: int | None, position: int) -> None:
        """Do the work of a stream up to an event's position. The work of a released stream is done."""
        if stream in self._streams:
            self._run(stream, position)

    def create_stream(self, priority: int) -> int:
        """Return a new stream."""
        made = next(self._numbers)
        self._streams[made] = _Stream()
        return made

    def is_stream_done(self, stream: int) -> bool:
        """Return whether all work of a stream is done; each question lets one piece of work be done."""
        found = self._stream(stream)
        is_done = not found.waiting
        self._run(stream, found.done + 1)
        return is_done

    def wait_for_stream(self, stream: int) -> None:
        """Let the host wait for a stream's work."""
        found = self._stream(stream)
        if found.graph is not None:
            raise DriverError("cuStreamSynchronize", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "a graph is being captured")
        self._run(stream, found.end)

    def wait_for_device(self) -> None:
        """Let the host wait for all work."""
        for stream, found in list(self._streams.items()):
            self._run(stream, found.end)

    def create_event(self, timed: bool) -> int:
        """Return a new event."""
        made = next(self._numbers)
        self._events[made] = _Event()
        return made

    def destroy_event(self, event: int) -> None:
        """Release an event."""
        del self._events[event]

    def record_event(self, event: int, stream: int) -> None:
        """Let an event stand for the work that is on a stream now."""
        found = self._events[event]
        found.graph = self._stream(stream).graph

        def reached() -> None:
            found.time = time.perf_counter()

        self._put(stream, reached, "record_event", event)
        found.stream, found.position = (stream, self._stream(stream).end) if found.graph is None else (None, 0)

    def is_event_done(self, event: int) -> bool:
        """Return whether the work that an event stands for is done; each question lets one piece of work be done."""
        found = self._events[event]
        if found.stream is None or found.stream not in self._streams:
            return True
        stream = self._stream(found.stream)
        is_done = stream.done >= found.position
        self._run(found.stream, min(stream.done + 1, found.position))
        return is_done

    def wait_for_event(self, event: int) -> None:
        """Let the host wait for an event."""
        found = self._events[event]
        self._catch_up(found.stream, found.position)

    def stream_waits_for(self, stream: int, event: int) -> None:
        """Let the later work of a stream wait for an event."""
        found = self._events[event]
        if found.graph is not None and found.graph in self._graphs:
            self._stream(stream).graph = found.graph
            return
        before, position = found.stream, found.position
        self._put(stream, lambda: self._catch_up(before, position), "stream_waits_for", event)

    def milliseconds(self, first: int, last: int) -> float:
        """Return the time between two events."""
        return (self._events[last].time - self._events[first].time) * 1000

    # Kernels

    def load(self, image: KernelImage) -> InterpretedKernel:
        """Return a kernel that Triton interprets."""
        return InterpretedKernel(self, image)

    # Graphs

    def begin_capture(self, stream: int) -> None:
        """Collect the later work of a stream."""
        found = self._stream(stream)
        if found.graph is not None:
            raise DriverError("cuStreamBeginCapture", "CUDA_ERROR_ILLEGAL_STATE", "the stream is being captured")
        found.graph = next(self._numbers)
        self._graphs[found.graph] = []

    def end_capture(self, stream: int) -> int:
        """Return the graph of the work that was collected."""
        graph = self._stream(stream).graph
        if graph is None:
            raise DriverError("cuStreamEndCapture", "CUDA_ERROR_ILLEGAL_STATE", "the stream is not being captured")
        for found in self._streams.values():
            if found.graph == graph:
                found.graph = None
        return graph

    def is_capturing(self, stream: int) -> bool:
        """Return whether a stream's work is being collected."""
        return self._stream(stream).graph is not None

    def instantiate(self, graph: int) -> int:
        """Return an executable form of a graph."""
        made = next(self._numbers)
        self._graphs[made] = self._graphs.pop(graph)
        return made

    def launch_graph(self, executable: int, stream: int) -> None:
        """Put the work of a graph on a stream."""
        steps = self._graphs[executable]
        self._put(stream, lambda: [step() for step in steps] and None, "launch_graph", executable)

    def destroy_executable(self, executable: int) -> None:
        """Release an executable graph."""
        del self._graphs[executable]


class InterpretedKernel:
    """A kernel that Triton interprets. Its pointers must lie in allocated memory when it is put on a stream, and when it
    runs."""

    def __init__(self, driver: StandIn, image: KernelImage):
        self._driver, self._types, self._name = driver, image.types, image.name
        self._function = image.interpreted()

    def launch(self, stream: int, grid: tuple[int, int, int], arguments: Sequence[int], constants: dict[str, int]) -> None:
        """Put a launch on a stream."""
        self._check(arguments)
        work = lambda: self._run(grid, arguments, constants)  # noqa: E731
        self._driver._put(stream, work, "launch", self._name, grid, tuple(arguments))

    def _check(self, arguments: Sequence[int]) -> None:
        for kind, value in zip(self._types, arguments, strict=True):
            if kind.startswith("*") and value:
                self._driver.check(f"cuLaunchKernel of {self._name}", value, 0)

    def _run(self, grid: tuple[int, int, int], arguments: Sequence[int], constants: dict[str, int]) -> None:
        self._check(arguments)
        with self._driver.opened(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            self._function(grid, arguments, constants)
