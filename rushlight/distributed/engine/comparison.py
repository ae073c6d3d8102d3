"""TORCH_DISTRIBUTED_DEBUG=DETAIL: ranks compare what they are about to do before they do it.

Without it, ranks that call different collectives wait for each other, and different shapes give wrong values.
"""

from __future__ import annotations

import enum
import os
from typing import TYPE_CHECKING

import numpy as np

from rushlight.distributed.engine import mpi
from rushlight.distributed.engine.operation import Operation
from rushlight.distributed.engine.work import Work

if TYPE_CHECKING:
    from rushlight.distributed.engine.process_group import ProcessGroup

_WIDTH = 1000  # bytes of a rank's text; longer ones are cut, and compared by their beginnings


class DebugLevel(enum.IntEnum):
    """How much is checked: OFF, INFO, or DETAIL, which compares each collective between ranks."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def _level_of(text: str) -> DebugLevel:
    try:
        return DebugLevel[text.upper()]
    except KeyError:
        raise ValueError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL, got {text!r}"
        ) from None


_level: list[DebugLevel] = []


def get_debug_level() -> DebugLevel:
    """Return the level: what `set_debug_level` set, or else the variable TORCH_DISTRIBUTED_DEBUG."""
    if not _level:
        set_debug_level_from_env()
    return _level[0]


def set_debug_level(level: DebugLevel) -> None:
    """Set the level. All ranks must have the same."""
    _level[:] = [DebugLevel(level)]


def set_debug_level_from_env() -> None:
    """Set the level to that of the variable TORCH_DISTRIBUTED_DEBUG. ValueError for a value that is none."""
    set_debug_level(_level_of(os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF")))


def compare(group: ProcessGroup, operation: Operation) -> None:
    """Raise RuntimeError on all ranks of a group unless they begin the same operation."""
    mine = str(operation).encode()[:_WIDTH].ljust(_WIDTH)
    everyone = np.zeros((group.size(), _WIDTH), np.uint8)
    MPI = mpi.load()
    request = group.control.Iallgather([np.frombuffer(mine, np.uint8), MPI.BYTE], [everyone, MPI.BYTE])
    Work(group, operation, [request], keep=everyone).wait()
    texts = [row.tobytes().decode(errors="replace").rstrip() for row in everyone]
    if len(set(texts)) > 1:
        raise RuntimeError(_difference(group, texts))


def _difference(group: ProcessGroup, texts: list[str]) -> str:
    """Return who calls what, the fewest first: these are likely wrong."""
    ranks: dict[str, list[int]] = {}
    for rank, text in zip(group.ranks, texts, strict=True):
        ranks.setdefault(text, []).append(rank)
    lines = [
        f"rank{'s' if len(who) > 1 else ''} {', '.join(map(str, who))}: {text}"
        for text, who in sorted(ranks.items(), key=lambda item: len(item[1]))
    ]
    return "\n  ".join(["Detected mismatch between collectives on ranks. They are about to run different ones:", *lines])
