"""The caching allocator of a device: memory of the driver, divided into blocks that are used again.

In: sizes and streams. Out: blocks. A freed block is used again at once by work on its own stream, because the stream runs in
order. If other streams used it (`record_stream`), it waits for events on them. Memory goes back to the driver when the driver
has none left, and in `empty_cache`.
"""

from __future__ import annotations

import bisect
import threading
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from rushlight.core.errors import OutOfMemoryError
from rushlight.cuda.driver import Driver, DriverOutOfMemory

_MIN_BLOCK = 512  # bytes; all blocks are multiples of it
_MAX_SMALL = 1 << 20  # larger blocks are not cut from the segments of small ones
_SMALL_SEGMENT = 2 << 20
_LARGE_SEGMENT = 20 << 20
_MAX_SHARED = 10 << 20  # larger blocks get segments of their own
_SEGMENT_STEP = 2 << 20
_MEBIBYTE = 1 << 20


@dataclass(eq=False, slots=True)
class Block:
    """A part of a segment. `before` and `after` are its neighbours there; `users` are other streams that use it."""

    address: int
    size: int
    stream: int
    pool: int
    is_small: bool
    before: Block | None = None
    after: Block | None = None
    is_free: bool = True
    requested: int = 0
    users: set[int] = field(default_factory=set)

    @property
    def is_whole(self) -> bool:
        """Whether the block is a whole segment."""
        return self.before is None and self.after is None


@dataclass
class Counter:
    """A number of bytes or blocks: now, at most, and all that were added and taken."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, amount: int) -> None:
        """Count an addition, or a removal if the amount is negative."""
        self.current += amount
        if amount < 0:
            self.freed -= amount
            return
        self.allocated += amount
        if self.current > self.peak:
            self.peak = self.current


COUNTERS = ("allocation", "segment", "allocated_bytes", "reserved_bytes", "requested_bytes")
_Key = tuple[int, bool, int]  # stream, whether blocks are small, pool


def rounded(nbytes: int) -> int:
    """Return the size of a block for a number of bytes."""
    return max(-(-nbytes // _MIN_BLOCK) * _MIN_BLOCK, _MIN_BLOCK)


def _segment_size(size: int) -> int:
    if size <= _MAX_SMALL:
        return _SMALL_SEGMENT
    return _LARGE_SEGMENT if size < _MAX_SHARED else -(-size // _SEGMENT_STEP) * _SEGMENT_STEP


class CachingAllocator:
    """The allocator of one device, which the caller has made current. Thread-safe.

    `release` only notes a block; the next call of another method takes it back. So it may be called by the garbage collector.
    """

    def __init__(self, driver: Driver, device: int):
        self._driver, self._device = driver, device
        self._lock = threading.RLock()
        self._free: dict[_Key, list[tuple[int, int, Block]]] = defaultdict(list)
        self._released: deque[Block] = deque()
        self._awaited: list[tuple[list[int], Block]] = []
        self._segments: dict[int, Block] = {}
        self._pools: dict[int, int] = {}  # pool -> number of graphs that use it
        self.counters = {name: Counter() for name in COUNTERS}
        self.retries = self.failures = 0
        self.limit: int | None = None

    def allocate(self, nbytes: int, stream: int, pool: int = 0) -> Block:
        """Return a block of at least `nbytes` for work on a stream; OutOfMemoryError if there is no memory left."""
        size = rounded(nbytes)
        with self._lock:
            self._take_back()
            key = (stream, size <= _MAX_SMALL, pool)
            block = self._find(key, size) or self._new_segment(key, size)
            self._split(block, size)
            block.is_free, block.requested = False, nbytes
            self._count(block, 1)
            return block

    def release(self, block: Block) -> None:
        """Note that a block is not used any more."""
        self._released.append(block)

    def record_stream(self, block: Block, stream: int) -> None:
        """Note that work on another stream uses a block."""
        if stream != block.stream:
            block.users.add(stream)

    def empty_cache(self) -> None:
        """Give unused segments back to the driver."""
        with self._lock:
            self._take_back()
            self._give_back()

    def retain_pool(self, pool: int) -> None:
        """Keep a pool's memory for one more graph."""
        self._pools[pool] = self._pools.get(pool, 0) + 1

    def release_pool(self, pool: int) -> None:
        """Let a graph go; without another one, the pool's memory may go back to the driver."""
        self._pools[pool] -= 1
        if not self._pools[pool]:
            del self._pools[pool]

    def settle(self) -> None:
        """Take back all blocks that were released, before numbers are read."""
        with self._lock:
            self._take_back()

    def segments(self) -> Iterable[tuple[int, int, list[Block]]]:
        """Return each segment's address, size and blocks."""
        for address, first in self._segments.items():
            blocks = [first]
            while blocks[-1].after is not None:
                blocks.append(blocks[-1].after)
            yield address, sum(block.size for block in blocks), blocks

    # Blocks

    def _find(self, key: _Key, size: int) -> Block | None:
        """Take the smallest free block that is large enough."""
        free = self._free[key]
        place = bisect.bisect_left(free, (size, 0))
        return free.pop(place)[2] if place < len(free) else None

    def _split(self, block: Block, size: int) -> None:
        """Cut the end off a block if it is worth keeping."""
        rest = block.size - size
        if rest < (_MIN_BLOCK if block.is_small else _MAX_SMALL + 1):
            return
        tail = Block(block.address + size, rest, block.stream, block.pool, block.is_small, block, block.after)
        if block.after is not None:
            block.after.before = tail
        block.after, block.size = tail, size
        self._insert(tail)

    def _insert(self, block: Block) -> None:
        bisect.insort(self._free[block.stream, block.is_small, block.pool], (block.size, block.address, block))

    def _remove(self, block: Block) -> None:
        free = self._free[block.stream, block.is_small, block.pool]
        del free[bisect.bisect_left(free, (block.size, block.address))]

    def _count(self, block: Block, sign: int) -> None:
        self.counters["allocation"].add(sign)
        self.counters["allocated_bytes"].add(sign * block.size)
        self.counters["requested_bytes"].add(sign * block.requested)

    def _take_back(self) -> None:
        for _ in range(len(self._released)):
            block = self._released.popleft()
            if any(self._driver.is_capturing(stream) for stream in block.users):
                self._released.append(block)  # an event in a graph tells nothing about the present
                continue
            self._count(block, -1)
            if block.users:
                self._awaited.append(([self._event_on(stream) for stream in block.users], block))
                block.users = set()
            else:
                self._put_back(block)
        self._awaited = [waiting for waiting in self._awaited if not self._is_settled(*waiting)]

    def _event_on(self, stream: int) -> int:
        event = self._driver.create_event(False)
        self._driver.record_event(event, stream)
        return event

    def _is_settled(self, events: list[int], block: Block) -> bool:
        if not all([self._driver.is_event_done(event) for event in events]):
            return False
        for event in events:
            self._driver.destroy_event(event)
        self._put_back(block)
        return True

    def _put_back(self, block: Block) -> None:
        """Add a block to the free ones, joined with free neighbours."""
        block.is_free = True
        if block.before is not None and block.before.is_free:
            self._remove(block.before)
            block = self._join(block.before, block)
        if block.after is not None and block.after.is_free:
            self._remove(block.after)
            block = self._join(block, block.after)
        self._insert(block)

    def _join(self, first: Block, second: Block) -> Block:
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        return first

    # Segments

    def _new_segment(self, key: _Key, size: int) -> Block:
        stream, is_small, pool = key
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
        block = self._segments[address] = Block(address, nbytes, stream, pool, is_small)
        self.counters["segment"].add(1)
        self.counters["reserved_bytes"].add(nbytes)
        return block

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
        self._awaited = [waiting for waiting in self._awaited if not self._is_settled(*waiting)]

    def _give_back(self) -> None:
        for address, block in list(self._segments.items()):
            if block.is_free and block.is_whole and block.pool not in self._pools:
                self._remove(block)
                del self._segments[address]
                self._driver.free(address)
                self.counters["segment"].add(-1)
                self.counters["reserved_bytes"].add(-block.size)

    def _describe_failure(self, size: int) -> str:
        free, total = self._driver.memory_info()
        reserved, allocated = self.counters["reserved_bytes"].current, self.counters["allocated_bytes"].current
        return (
            f"CUDA out of memory. Tried to allocate {size / _MEBIBYTE:.2f} MiB. GPU {self._device} has a total capacity of "
            f"{total / _MEBIBYTE:.2f} MiB of which {free / _MEBIBYTE:.2f} MiB is free. Tensors of this process hold "
            f"{allocated / _MEBIBYTE:.2f} MiB, and {(reserved - allocated) / _MEBIBYTE:.2f} MiB is reserved but unused. Use "
            "smaller batches, or free tensors that are no longer needed."
        )
