"""Chooses groups that one launch may compute together: a horizontal fusion of groups with equal kernels.

In: groups in the order of their launches, and a key for each, which is equal for groups that could share a launch. Out: batches
of groups in a new order. Groups of a batch do not depend on each other, not even through other batches.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence

from rushlight.inductor.ir import Buffer
from rushlight.inductor.scheduler import Group

MAX_TRIED = 8  # batches with a group's key that it may join, so that long chains of equal groups take no time
SMALL_BYTES = 1 << 20  # buffers up to this size may live longer than their order in the graph asks for


def batches_of(groups: Sequence[Group], keys: Sequence[Hashable | None]) -> list[list[Group]]:
    """Return the groups in batches. Groups whose key is None are batches of one. Without equal keys the order stays."""
    batches: list[list[int]] = []
    needs: list[set[int]] = []  # the batches that each batch reads from
    ancestors: list[int] = []  # sets of bits: the batches that each batch depends on, directly or not
    home: dict[str, int] = {}
    open_batches: dict[Hashable, list[int]] = {}
    for place, (group, key) in enumerate(zip(groups, keys, strict=True)):
        needed = {home[name] for name in group.reads() if name in home}
        above = 0
        for batch in needed:
            above |= ancestors[batch] | 1 << batch
        alike = [] if key is None else open_batches.setdefault(key, [])
        found = next((batch for batch in alike[-MAX_TRIED:] if not above >> batch & 1), None)
        if found is None:
            found = len(batches)
            batches.append([])
            needs.append(set())
            ancestors.append(above)
            alike.append(found)
        elif above & ~ancestors[found]:
            _add_ancestors(ancestors, found, above)
        batches[found].append(place)
        needs[found] |= needed
        home.update(dict.fromkeys(group.names, found))
    return [[groups[place] for place in batches[batch]] for batch in _in_order(batches, needs)]


def _add_ancestors(ancestors: list[int], batch: int, above: int) -> None:
    """Note that a batch, and all that depend on it, depend on more batches."""
    ancestors[batch] |= above
    for other, known in enumerate(ancestors):
        if known >> batch & 1:
            ancestors[other] = known | above


def _in_order(batches: list[list[int]], needs: list[set[int]]) -> list[int]:
    """Return the batches' numbers. Each comes after those that it needs; else the order is that of their first groups."""
    waiting = list(map(len, needs))
    followers: list[list[int]] = [[] for _ in batches]
    for batch, needed in enumerate(needs):
        for other in needed:
            followers[other].append(batch)
    ready = [(batches[batch][0], batch) for batch, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, batch = heapq.heappop(ready)
        order.append(batch)
        for other in followers[batch]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, (batches[other][0], other))
    return order


def may_move(group: Group, buffers: dict[str, Buffer], is_kept: Callable[[str], bool]) -> bool:
    """Return whether a group may run earlier or later without a cost in memory: the buffers that it reads and writes are small,
    or live for the whole call (`is_kept`)."""
    return all(is_kept(name) or _is_small(buffers[name]) for name in group.reads() | group.stored if name in buffers)


def _is_small(buffer: Buffer) -> bool:
    numel = buffer.layout.numel
    return isinstance(numel, int) and numel * buffer.layout.dtype.itemsize <= SMALL_BYTES
