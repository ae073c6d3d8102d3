"""The caching allocator of a device: memory of the driver, divided into blocks that are used again.

In: sizes and streams. Out: blocks. A freed block is used again at once by work on its own stream, because the stream runs in
order. If other streams used it (`record_stream`), it waits for events on them. Memory goes back to the driver when the driver
has none left, and in `empty_cache`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

from rushlight._C import DeviceHeap, DeviceMemory, MemoryCounter
from rushlight.core.errors import OutOfMemoryError
from rushlight.cuda.driver import Driver, DriverOutOfMemory

_MAX_SMALL = 1 << 20  # bytes; larger blocks are not cut from the segments of small ones (csrc/gpu_blocks.c has the same)
_SMALL_SEGMENT = 2 << 20
_LARGE_SEGMENT = 20 << 20
_MAX_SHARED = 10 << 20  # larger blocks get segments of their own
_SEGMENT_STEP = 2 << 20
_MEBIBYTE = 1 << 20
Counter = MemoryCounter


class Block(NamedTuple):
    """A part of a segment."""

    address: int
    size: int
    is_free: bool


class Segment(NamedTuple):
    """Memory that the driver gave at once, and the blocks in it in order."""

    stream: int
    pool: int
    is_small: bool
    blocks: list[Block]

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return self.blocks[0].address

    @property
    def size(self) -> int:
        """The size in bytes."""
        return sum(block.size for block in self.blocks)


COUNTERS = ("allocation", "segment", "allocated_bytes", "reserved_bytes", "requested_bytes")


def _segment_size(size: int) -> int:
    if size <= _MAX_SMALL:
        return _SMALL_SEGMENT
    return _LARGE_SEGMENT if size < _MAX_SHARED else -(-size // _SEGMENT_STEP) * _SEGMENT_STEP


class CachingAllocator(DeviceHeap):
    """The allocator of one device, which the caller has made current. Thread-safe.

    `allocate(nbytes, stream, pool=0)` returns memory whose last reference gives it back; `pool` is that of new storages. These,
    and the lists of free blocks, are in `csrc/gpu_memory.c`, which calls `grow` and `settle`.
    """

    def __init__(self, driver: Driver, device: int):
        self._driver, self._device = driver, device
        self._lock = threading.RLock()
        self._awaited: list[tuple[list[int], DeviceMemory]] = []  # memory goes back with its last reference
        self._unready: list[DeviceMemory] = []  # used by captured streams: an event in a graph tells nothing about the present
        self._pools: dict[int, int] = {}  # pool -> number of graphs that use it
        self.counters = {name: getattr(self, name, None) or Counter() for name in COUNTERS}
        self.retries = self.failures = 0
        self.limit: int | None = None

    def empty_cache(self) -> None:
        """Give unused segments back to the driver."""
        with self._lock:
            self.settle()
            self._give_back()

    def retain_pool(self, pool: int) -> None:
        """Keep a pool's memory for one more graph."""
        self._pools[pool] = self._pools.get(pool, 0) + 1

    def release_pool(self, pool: int) -> None:
        """Let a graph go; without another one, the pool's memory may go back to the driver."""
        self._pools[pool] -= 1
        if not self._pools[pool]:
            del self._pools[pool]

    def segments(self) -> Iterable[Segment]:
        """Return the segments."""
        for stream, pool, is_small, blocks in self.blocks_by_segment():
            yield Segment(stream, pool, bool(is_small), [Block(*block) for block in blocks])

    def settle(self) -> None:
        """Put released memory back where the work of all streams that use it is done."""
        with self._lock:
            pending, self._unready = [*self._unready, *self.take_pending()], []
            for memory in pending:
                if any(self._driver.is_capturing(stream) for stream in memory.users):
                    self._unready.append(memory)
                else:
                    self._awaited.append(([self._event_on(stream) for stream in memory.take_users()], memory))
            waiting, self._awaited = self._awaited, []
            self._awaited += [item for item in waiting if not self._is_settled(item[0])]
            self.awaits = bool(self._awaited or self._unready)

    def _event_on(self, stream: int) -> int:
        event = self._driver.create_event(False)
        self._driver.record_event(event, stream)
        return event

    def _is_settled(self, events: list[int]) -> bool:
        if not all([self._driver.is_event_done(event) for event in events]):
            return False
        for event in events:
            self._driver.destroy_event(event)
        return True

    # Segments

    def grow(self, size: int, stream: int, pool: int) -> None:
        """Add a segment with room for a block; OutOfMemoryError if there is no memory left."""
        with self._lock:
            nbytes = _segment_size(size)
            address = self._ask(nbytes)
            if address is None:
                self.retries += 1
                self._wait_for_blocks()
                self._give_back()
                address = self._ask(nbytes)
            if address is None:
                self.failures += 1
                raise OutOfMemoryError(self._describe_failure(size))
            self.add_segment(address, nbytes, stream, size <= _MAX_SMALL, pool)
            self.counters["segment"].add(1)
            self.counters["reserved_bytes"].add(nbytes)

    def _ask(self, nbytes: int) -> int | None:
        if self.limit is not None and self.counters["reserved_bytes"].current + nbytes > self.limit:
            return None
        try:
            return self._driver.allocate(nbytes)
        except DriverOutOfMemory:
            return None

    def _wait_for_blocks(self) -> None:
        for events, _ in self._awaited:
            for event in events:
                self._driver.wait_for_event(event)
        self.settle()

    def _give_back(self) -> None:
        for segment in list(self.segments()):
            if len(segment.blocks) == 1 and segment.blocks[0].is_free and segment.pool not in self._pools:
                self.remove_segment(segment.address)
                self._driver.free(segment.address)
                self.counters["segment"].add(-1)
                self.counters["reserved_bytes"].add(-segment.size)

    def _describe_failure(self, size: int) -> str:
        free, total = self._driver.memory_info()
        reserved, allocated = self.counters["reserved_bytes"].current, self.counters["allocated_bytes"].current
        return (
            f"CUDA out of memory. Tried to allocate {size / _MEBIBYTE:.2f} MiB. GPU {self._device} has a total capacity of "
            f"{total / _MEBIBYTE:.2f} MiB of which {free / _MEBIBYTE:.2f} MiB is free. Tensors of this process hold "
            f"{allocated / _MEBIBYTE:.2f} MiB, and {(reserved - allocated) / _MEBIBYTE:.2f} MiB is reserved but unused. Use "
            "smaller batches, or free tensors that are no longer needed."
        )
