"""Process-wide settings of the executors, which programs may change.

`profiling` selects the profiling executor: it observes `profiled_runs` runs, and then makes a plan for the observed sizes and
dtypes. Without it, or without `optimized`, functions run by one plan without assumptions. Native code is generated in every
mode except `optimized=False` and `fuses=False`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

Strategy = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Modes:
    """The settings as one record."""

    profiling: bool = False
    """The profiling executor runs functions that are first called from now on."""
    specializes: bool = True
    """The profiling executor makes plans for what it saw; otherwise it runs like the simple one."""
    profiled_runs: int = 1
    optimized: bool = True
    fuses: bool = True
    """Operators are fused, and native code is made."""
    fuses_on_gpu: bool = True
    tensor_exprs: bool = True
    """Groups stand behind checks of their inputs; otherwise the legacy fuser's guards bail out of graphs."""
    onednn: bool = False
    autodiff_threshold: int = 5
    """The fewest operators that are differentiated as a whole."""
    inlines_fusion_groups: bool = True
    strategy: Strategy = (("STATIC", 2), ("DYNAMIC", 10))

    @property
    def depth(self) -> int:
        """Return the maximal number of specialized plans of a function, one the fallback of the other."""
        return sum(depth for _, depth in self.strategy)

    def strategy_at(self, depth: int) -> str:
        """Return whether a plan has static or dynamic sizes, if this many plans are left."""
        total = 0
        for kind, count in reversed(self.strategy):
            total += count
            if depth <= total:
                return kind
        return "STATIC"


_lock = threading.Lock()
_modes = Modes()


def modes() -> Modes:
    """Return the current settings."""
    return _modes


def change_modes(**changed: object) -> Modes:
    """Change some settings; returns the old ones."""
    global _modes
    with _lock:
        before, _modes = _modes, replace(_modes, **changed)
    return before


def set_profiling(on: bool) -> bool:
    """Select the profiling executor for functions called from now on; returns the old choice."""
    return change_modes(profiling=bool(on)).profiling


def set_profiled_runs(count: int) -> int:
    """Set the number of profiled runs; returns the old number. ValueError for a negative number."""
    if count < 0:
        raise ValueError(f"the number of profiled runs must not be negative, got {count}")
    return change_modes(profiled_runs=int(count)).profiled_runs


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Return a context manager that switches the optimization of functions on or off."""
    before = change_modes(optimized=bool(should_optimize)).optimized
    try:
        yield
    finally:
        change_modes(optimized=before)
