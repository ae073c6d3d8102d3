"""Memory planning: every buffer that lives between kernels gets an offset in one arena, reused once its last reader ran."""

from __future__ import annotations

from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A block needed from group `first` to group `last`, both included. `nbytes` is its size."""

    name: str
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """Offsets in bytes by name, and the arena's size."""

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


def aligned(nbytes: int) -> int:
    """`nbytes` rounded up to the alignment of buffers."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def plan(lifetimes: list[Lifetime]) -> ArenaPlan:
    """Place the blocks, largest first, each at the lowest offset free throughout its lifetime."""
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
