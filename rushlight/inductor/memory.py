"""Memory planning: every buffer that lives between kernels gets an offset in one arena, reused after its last reader.

With symbolic sizes, blocks with disjoint lifetimes share *slots*. A slot is as long as the largest of its blocks; native code
computes the slots' offsets at each call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rushlight.core.algebra import Var
from rushlight.core.storage import aligned
from rushlight.inductor.sizes import Size, evaluate


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A block of `nbytes` that is needed from group `first` to group `last`, both included."""

    name: str
    nbytes: Size
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """The offset of each block in bytes, and the arena's size."""

    offsets: dict[str, int]
    nbytes: int
    lifetimes: tuple[Lifetime, ...] = ()

    def __str__(self) -> str:
        unshared = sum(aligned(block.nbytes) for block in self.lifetimes)
        lines = [f"arena of {self.nbytes} bytes for {unshared} bytes of buffers"]
        for block in self.lifetimes:
            lines.append(
                f"  {block.name}: {block.nbytes} bytes at {self.offsets[block.name]}, groups {block.first}-{block.last}"
            )
        return "\n".join(lines)


def plan(lifetimes: list[Lifetime]) -> ArenaPlan:
    """Place blocks, largest first, each at the lowest offset that is free throughout its lifetime."""
    placed: list[tuple[int, int, Lifetime]] = []
    offsets: dict[str, int] = {}
    for block in sorted(lifetimes, key=lambda item: (-item.nbytes, item.first, item.name)):
        size = aligned(block.nbytes)
        busy = sorted(
            (start, end) for start, end, other in placed if other.first <= block.last and block.first <= other.last
        )
        offset = _lowest_gap(busy, size)
        placed.append((offset, offset + size, block))
        offsets[block.name] = offset
    total = max((end for _, end, _ in placed), default=0)
    return ArenaPlan(offsets, total, tuple(sorted(lifetimes, key=lambda item: item.first)))


def _lowest_gap(busy: list[tuple[int, int]], size: int) -> int:
    offset = 0
    for start, end in busy:
        if start - offset >= size:
            break
        offset = max(offset, end)
    return offset


@dataclass(frozen=True, slots=True)
class Slot:
    """A part of the arena that several blocks share."""

    blocks: tuple[Lifetime, ...]

    @property
    def sizes(self) -> list[Size]:
        """The distinct sizes of its blocks in bytes."""
        return list(dict.fromkeys(block.nbytes for block in self.blocks))

    def is_free(self, block: Lifetime) -> bool:
        """Return whether no block of the slot lives at the same time as `block`."""
        return all(other.last < block.first or block.last < other.first for other in self.blocks)


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """The slots of an arena whose size depends on size symbols, in order."""

    slots: tuple[Slot, ...]

    def __str__(self) -> str:
        lines = [f"arena of {len(self.slots)} slots for {sum(len(slot.blocks) for slot in self.slots)} buffers"]
        for number, slot in enumerate(self.slots):
            lines.append(f"  slot {number}: {' or '.join(map(str, slot.sizes))} bytes")
            lines += [f"    {block.name}: {block.nbytes} bytes, groups {block.first}-{block.last}" for block in slot.blocks]
        return "\n".join(lines)


def plan_slots(lifetimes: list[Lifetime], hints: Mapping[Var, int]) -> SlotPlan:
    """Assign blocks, largest first by the hints, each to the free slot nearest in size, or to a new one."""
    slots: list[Slot] = []
    for block in sorted(lifetimes, key=lambda item: (-evaluate(item.nbytes, hints), item.first, item.name)):
        free = [position for position, slot in enumerate(slots) if slot.is_free(block)]
        if free:
            # Slots are ordered by their largest block. Prefer a slot that has a block of this very size, because it need not
            # grow.
            chosen = next((position for position in free if block.nbytes in slots[position].sizes), free[-1])
            slots[chosen] = Slot((*slots[chosen].blocks, block))
        else:
            slots.append(Slot((block,)))
    return SlotPlan(tuple(slots))
