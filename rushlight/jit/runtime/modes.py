"""How the executors run functions: settings of the process that programs may change.

`profiling` is the profiling executor: it watches `profiled_runs` runs, and then has a plan for the sizes and dtypes that it
saw. Without it, or without `optimized`, functions run by one plan that assumes nothing. Native code is made in every mode but
`optimized=False`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Modes:
    """The settings as one record."""

    profiling: bool = False
    profiled_runs: int = 1
    optimized: bool = True


_lock = threading.Lock()
_modes = Modes()


def modes() -> Modes:
    """The settings as they are now."""
    return _modes


def _change(**changed: object) -> Modes:
    global _modes
    with _lock:
        before, _modes = _modes, replace(_modes, **changed)
    return before


def set_profiling(on: bool) -> bool:
    """Choose the profiling executor for functions that are called from now on; what was chosen before."""
    return _change(profiling=bool(on)).profiling


def set_profiled_runs(count: int) -> int:
    """How many runs are watched; the number before. ValueError for a negative number."""
    if count < 0:
        raise ValueError(f"the number of profiled runs must not be negative, got {count}")
    return _change(profiled_runs=int(count)).profiled_runs


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context in which functions are optimized, or run just as they were emitted."""
    before = _change(optimized=bool(should_optimize)).optimized
    try:
        yield
    finally:
        _change(optimized=before)
