"""`rushlight.multiprocessing`: Python's `multiprocessing`; tensors pass through queues and pipes by pickle.

A tensor that arrives is a copy: what one process writes the others don't see. `set_sharing_strategy` is kept for programs that
call it and has no effect on that.
"""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing import *  # noqa: F403

from rushlight.multiprocessing.processes import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__, "ProcessContext", "ProcessExitedException", "ProcessRaisedException",
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip

_lock = threading.Lock()
_strategy = ["file_descriptor"]


def get_all_sharing_strategies() -> set[str]:
    """Return the names that `set_sharing_strategy` accepts."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Return the name set last."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Remember a strategy's name; AssertionError for names other than `get_all_sharing_strategies()`."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}: expected one of {sorted(get_all_sharing_strategies())}"
        )
    with _lock:
        _strategy[0] = new_strategy
