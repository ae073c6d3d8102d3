"""Passes over a group's rows, for every target: which member is computed in which pass."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.inductor.ir import Buffer, Reduction


def assign_passes(members: list[Buffer], is_row: Callable[[Buffer], bool]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the pass that computes each member, and for row values the pass after which they are known."""
    passes: dict[str, int] = {}
    after: dict[str, int] = {}
    for member in members:
        earliest, known = 0, -1
        for name in member.reads():
            if name in after:
                earliest, known = max(earliest, after[name] + 1), max(known, after[name])
            elif name in passes:
                earliest = max(earliest, passes[name])
        if not is_row(member):
            passes[member.name] = earliest
        else:
            after[member.name] = earliest if isinstance(member.data, Reduction) else known
    return passes, after
