"""The devices of this process: the current device and stream of each thread, memory for tensors, and waiting.

In: a device's index. Out: storages on it. Everything that the library puts on a device goes to `current_stream(index)`. Kernels
that find an error set their device's status word; `check_status` reads it where the host waits, and raises.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rushlight._C as _C
from rushlight.core.device import device
from rushlight.core.storage import StorageImpl
from rushlight.cuda.allocator import CachingAllocator
from rushlight.cuda.driver import DEFAULT_STREAM, Driver, DriverError, active_driver

_STATUS_BYTES = 4

# The thread's state is in C (`csrc/gpu_thread.c`), where launch plans read it: its device, and its stream on each device.
current_index = _C.current_gpu
current_stream = _C.gpu_stream
choose_stream = _C.choose_gpu_stream


class IdleStreams:
    """Streams of one priority that no object names now. They are kept for later `torch.cuda.Stream`s and never destroyed:
    blocks of memory, and numbers, stay tied to a stream for longer than its object lives."""

    def __init__(self, found: Driver, index: int, priority: int):
        self._driver, self._index, self._priority = found, index, priority
        self._idle: list[int] = []

    def take(self) -> int:
        """Return an idle stream, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            self._driver.use(self._index)
            return self._driver.create_stream(self._priority)

    def give_back(self, stream: int) -> None:
        """Keep a stream for later."""
        self._idle.append(stream)


class Device:
    """One device's state in this process."""

    def __init__(self, found: Driver, index: int):
        self.index = index
        self.place = device("cuda", index)
        self.driver = found
        self.allocator = CachingAllocator(found, index)
        self.draws: Any = None  # the random numbers of the graph that is captured now
        self._idle: dict[int, IdleStreams] = {}
        self._status = 0
        self.may_have_failed: dict[str, None] = {}  # why kernels may have set the status word since it was read

    def use(self) -> None:
        """Make the device this thread's current one for the driver."""
        self.driver.use(self.index)

    @property
    def pool(self) -> int:
        """The pool of new storages: 0, or that of the graph that is captured."""
        return self.allocator.pool

    @pool.setter
    def pool(self, number: int) -> None:
        self.allocator.pool = number

    def idle_streams(self, priority: int) -> IdleStreams:
        """Return the streams of a priority that may be taken."""
        return self._idle.setdefault(priority, IdleStreams(self.driver, self.index, priority))

    def status(self) -> int:
        """Return the address of the status word. Who lets a kernel write to it notes the reason in `may_have_failed`."""
        if not self._status:
            self._status = self.driver.allocate(_STATUS_BYTES)
            self.driver.fill(self._status, 0, _STATUS_BYTES, DEFAULT_STREAM)
            self.driver.wait_for_stream(DEFAULT_STREAM)
        return self._status

    def check_status(self) -> None:
        """Raise IndexError if a kernel that the host waited for has reported an error."""
        if not self.may_have_failed or self.driver.is_capturing(current_stream(self.index)):
            return
        word, stream = ctypes.c_int32(0), current_stream(self.index)
        self.driver.copy_to_host(ctypes.addressof(word), self._status, _STATUS_BYTES, stream)
        reasons = list(self.may_have_failed)
        self.may_have_failed.clear()
        if word.value:
            self.driver.fill(self._status, 0, _STATUS_BYTES, stream)
            raise IndexError(
                f"a kernel on {self.place} found an index or a value that is out of range. It ran some time before this call, "
                f"in one of: {'; '.join(reasons)}"
            )


_devices: dict[int, Device] = {}
_lock = threading.RLock()
_pool_numbers = itertools.count(1)


_FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method"
)
_parents: list[Device] = []  # the devices of the process that this one was forked from, which drivers do not let it use


def _leave_parents_devices() -> None:
    _parents.extend(_devices.values())
    _devices.clear()
    _C.forget_plans()


os.register_at_fork(after_in_child=_leave_parents_devices)


def forget_devices() -> None:
    """Start anew, for tests that change the driver. Tensors of the former driver must be gone."""
    _parents.clear()
    _devices.clear()
    _C.forget_plans()
    _C.leave_gpus()
    for forget in _forgetting:
        forget()


_forgetting: list[Callable[[], None]] = []


def on_forget(function: Callable[[], None]) -> Callable[[], None]:
    """Register a function that drops what was made for the former driver."""
    _forgetting.append(function)
    return function


def is_present() -> bool:
    """Return whether there is a device."""
    return active_driver().device_count() > 0


def device_at(index: int | None = None) -> Device:
    """Return a device and make it the driver's current one; None means the thread's. RuntimeError for a number too large."""
    index = current_index() if index is None else index
    found = _devices.get(index)
    if found is None:
        with _lock:
            found = _devices.get(index) or _open(index)
    found.driver.use(index)
    return found


def _open(index: int) -> Device:
    if _parents:
        raise RuntimeError(_FORKED)
    found = active_driver()
    if not 0 <= index < found.device_count():
        raise DriverError("cuDeviceGet", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")
    made = _devices[index] = Device(found, index)
    return made


def is_opened(place: device) -> bool:
    """Return whether a place names a device that was used."""
    return place.type == "cuda" and place.index in _devices


def opened_devices() -> list[Device]:
    """Return the devices that were used."""
    return list(_devices.values())


def choose_device(index: int) -> None:
    """Make a device the thread's."""
    device_at(index)
    _C.choose_gpu(index)


@contextmanager
def on_device(index: int) -> Iterator[Device]:
    """Use a device in a block."""
    before = current_index()
    choose_device(index)
    try:
        yield _devices[index]
    finally:
        choose_device(before)


def allocate(index: int, nbytes: int) -> StorageImpl:
    """Return an uninitialised storage on a device."""
    found = device_at(index)
    return found.allocator.allocate_storage(nbytes, current_stream(index), found.place)


def wait_for_stream(index: int) -> None:
    """Let the host wait for the thread's stream on a device; IndexError if a kernel has reported an error."""
    found = device_at(index)
    found.driver.wait_for_stream(current_stream(index))
    found.check_status()


def let_wait(index: int, stream: int, other: int | None = None) -> None:
    """Let a device's current stream wait for the present work of a stream, which may be another device's."""
    _order(index if other is None else other, stream, index, current_stream(index))


def let_others_wait(index: int, stream: int) -> None:
    """Let a stream of a device wait for the present work of the current stream."""
    _order(index, current_stream(index), index, stream)


def _order(first_index: int, first: int, index: int, stream: int) -> None:
    """Let a stream of a device wait for the present work of a first one, which may be another device's."""
    found = device_at(first_index).driver
    event = found.create_event(False)
    found.record_event(event, first)
    device_at(index).driver.stream_waits_for(stream, event)
    found.destroy_event(event)


def wait_for_device(index: int) -> None:
    """Let the host wait for all work of a device; IndexError if a kernel has reported an error."""
    found = device_at(index)
    found.driver.wait_for_device()
    found.check_status()


@contextmanager
def outside_of_pools(index: int) -> Iterator[None]:
    """Take memory from no graph's pool in a block."""
    found = device_at(index)
    before, found.pool = found.pool, 0
    try:
        yield
    finally:
        found.pool = before


def new_pool() -> int:
    """Return a number for a pool of memory that only graphs use."""
    return next(_pool_numbers)
