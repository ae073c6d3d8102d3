"""How the executors run functions: settings of the process that programs may change.

`profiling` is the profiling executor: it watches `profiled_runs` runs, and then has a plan for the sizes and dtypes that it
saw. Without it, or without `optimized`, functions run by one plan that assumes nothing. Native code is made in every mode but
`optimized=False` and `fuses=False`.
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
        """How many plans a function may have, one after another, for what it sees."""
        return sum(depth for _, depth in self.strategy)

    def strategy_at(self, depth: int) -> str:
        """Whether a plan fixes sizes ("STATIC") or leaves them open ("DYNAMIC"), with so many plans left."""
        total = 0
        for kind, count in reversed(self.strategy):
            total += count
            if depth <= total:
                return kind
        return "STATIC"


_lock = threading.Lock()
_modes = Modes()


def modes() -> Modes:
    """The settings as they are now."""
    return _modes


def change_modes(**changed: object) -> Modes:
    """Change some settings; what they were before."""
    global _modes
    with _lock:
        before, _modes = _modes, replace(_modes, **changed)
    return before


def set_profiling(on: bool) -> bool:
    """Choose the profiling executor for functions that are called from now on; what was chosen before."""
    return change_modes(profiling=bool(on)).profiling


def set_profiled_runs(count: int) -> int:
    """How many runs are watched; the number before. ValueError for a negative number."""
    if count < 0:
        raise ValueError(f"the number of profiled runs must not be negative, got {count}")
    return change_modes(profiled_runs=int(count)).profiled_runs


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context in which functions are optimized, or run just as they were emitted."""
    before = change_modes(optimized=bool(should_optimize)).optimized
    try:
        yield
    finally:
        change_modes(optimized=before)
