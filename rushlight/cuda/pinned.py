"""Page-locked ("pinned") host memory: the device copies from and to it while the host goes on.

In: sizes, tensors. Out: CPU storages whose memory the driver has locked. Freed memory is kept for later requests of the same
size class, once the copies that use it are done.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict, deque

from rushlight.core.device import CPU
from rushlight.core.storage import StorageImpl
from rushlight.cuda import runtime
from rushlight.cuda.driver import active_driver

_SMALLEST = 4096


class _Locked:
    """A locked block; its last reference makes it reusable."""

    def __init__(self, address: int, size: int):
        self.address, self.size = address, size
        self.events: list[int] = []

    def __del__(self) -> None:
        _released.append((self.address, self.size, self.events))


_released: deque[tuple[int, int, list[int]]] = deque()
_free: dict[int, list[int]] = defaultdict(list)


@runtime.on_forget
def _forget() -> None:
    _released.clear()
    _free.clear()


def allocate_pinned(nbytes: int) -> StorageImpl:
    """Return an uninitialised CPU storage of page-locked memory."""
    runtime.device_at()
    size = max(_SMALLEST, 1 << max(nbytes - 1, 1).bit_length())
    _take_back()
    address = _free[size].pop() if _free[size] else active_driver().allocate_host(size)
    buffer = (ctypes.c_byte * nbytes).from_address(address)
    buffer.owner = _Locked(address, size)
    return StorageImpl(buffer, nbytes, CPU, address)


def _take_back() -> None:
    for _ in range(len(_released)):
        address, size, events = _released.popleft()
        waiting = [event for event in events if not active_driver().is_event_done(event)]
        for event in set(events) - set(waiting):
            active_driver().destroy_event(event)
        if waiting:
            _released.append((address, size, waiting))
        else:
            _free[size].append(address)


def is_pinned(storage: StorageImpl) -> bool:
    """Return whether a storage's memory is page-locked."""
    return type(getattr(storage.buffer, "owner", None)) is _Locked if storage.device == CPU else False


def note_copy(storage: StorageImpl, stream: int) -> None:
    """Keep locked memory from being used again before the copies on a stream are done."""
    event = active_driver().create_event(False)
    active_driver().record_event(event, stream)
    storage.buffer.owner.events.append(event)


def release_cached() -> None:
    """Give unused page-locked memory back to the driver."""
    _take_back()
    for addresses in _free.values():
        while addresses:
            active_driver().free_host(addresses.pop())
