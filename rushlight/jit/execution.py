"""What programs may say about the execution of scripted functions, and ask of it, under torch's names."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.jit.graph_api.graphs import Graph
from rushlight.jit.runtime.executor import last_executed_optimized_graph
from rushlight.jit.runtime.modes import modes, optimized_execution, set_profiled_runs, set_profiling

__all__ = [
    "get_num_profiled_runs", "get_profiling_executor", "last_graph", "optimized_execution", "set_fusion_strategy",
    "set_profiled_runs", "set_profiling",
]  # fmt: skip
_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def get_profiling_executor() -> bool:
    """Whether functions that are called from now on are profiled."""
    return modes().profiling


def get_num_profiled_runs() -> int:
    """How many runs are watched before a function is specialized."""
    return modes().profiled_runs


def last_graph() -> Graph | None:
    """The optimized graph that this thread ran last; None before the first run."""
    found = last_executed_optimized_graph()
    return None if found is None else Graph(found)


def set_fusion_strategy(strategy: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Say for how many sizes code is to be specialized: pairs of "STATIC" or "DYNAMIC" and a depth; the strategy before.

    It is kept and given back: native code is made for each size of its own. ValueError for another word or a negative depth.
    """
    global _strategy
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC") or depth < 0:
            raise ValueError(f"expected pairs of 'STATIC' or 'DYNAMIC' and a depth, got ({kind!r}, {depth!r})")
    before, _strategy = _strategy, list(strategy)
    return before
