"""Settings and queries of scripted functions' execution, under torch's names."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rushlight.jit.graph_api.graphs import Graph
from rushlight.jit.runtime.executor import SimpleExecutor, last_executed_optimized_graph
from rushlight.jit.runtime.modes import change_modes, modes, optimized_execution, set_profiled_runs, set_profiling

__all__ = [
    "ExecutorState", "enable_onednn_fusion", "fuser", "get_num_profiled_runs", "get_profiling_executor", "last_graph",
    "onednn_fusion_enabled", "optimized_execution", "set_bailout_depth", "set_fusion_strategy", "set_profiled_runs",
    "set_profiling",
]  # fmt: skip
_FUSERS: dict[str, dict[str, bool]] = {
    "fuser0": {"fuses": True, "fuses_on_gpu": True, "tensor_exprs": False, "onednn": False},
    "fuser1": {"fuses": True, "fuses_on_gpu": True, "tensor_exprs": True, "onednn": False, "profiling": True,
               "optimized": True},
    "fuser2": {"fuses": False, "fuses_on_gpu": False, "tensor_exprs": False, "onednn": False},
    "fuser3": {"fuses": True, "fuses_on_gpu": False, "tensor_exprs": True, "onednn": True, "profiling": True,
               "optimized": True},
    "none": {"fuses": False, "fuses_on_gpu": False, "tensor_exprs": False, "onednn": False},
}  # fmt: skip


def get_profiling_executor() -> bool:
    """Return whether functions are profiled from now on."""
    return modes().profiling


def get_num_profiled_runs() -> int:
    """Return the number of profiled runs before a function is specialized."""
    return modes().profiled_runs


def last_graph() -> Graph | None:
    """Return the optimized graph that this thread ran last; None before the first run."""
    found = last_executed_optimized_graph()
    return None if found is None else Graph(found)


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """Return a context manager in which one of the fusers is active: "fuser0" (guards that bail out of graphs), "fuser1"
    and "fuser3" (groups behind checks, in the profiling executor), or none ("fuser2", which was nvFuser, and "none"): then
    no native code is made.

    Exception for another name.
    """
    if name not in _FUSERS:
        raise Exception(f"unrecognized fuser option (name: {name}); there are {', '.join(_FUSERS)}")
    chosen = _FUSERS[name]
    before = change_modes(**chosen)
    try:
        yield
    finally:
        change_modes(**{key: getattr(before, key) for key in chosen})


def set_fusion_strategy(strategy: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Set the number and kinds of plans that the profiling executor may make of a function, each the fallback of the one
    before: pairs of "STATIC" (for observed sizes) or "DYNAMIC" (for any sizes), and a number. Returns the old strategy.

    It applies to functions first called from now on. ValueError for another word or a negative number, TypeError for anything
    but a sequence of pairs.
    """
    if isinstance(strategy, str) or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in strategy):
        raise TypeError(f"set_fusion_strategy(): expected a list of pairs of a word and a number, got {strategy!r}")
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise ValueError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {kind}")
        if not isinstance(depth, int) or depth < 0:
            raise ValueError(f"the number of plans must not be negative, got {depth!r} for {kind}")
    return list(change_modes(strategy=tuple((kind, depth) for kind, depth in strategy)).strategy)


def set_bailout_depth(depth: int) -> int:
    """Set the number of static plans: an older form of `set_fusion_strategy`. Returns the old number of plans."""
    warnings.warn(f"Use _jit_set_fusion_strategy, bailout depth is deprecated. Setting to (STATIC, {depth})", stacklevel=2)
    before = set_fusion_strategy([("STATIC", depth)])
    return sum(count for _, count in before)


def enable_onednn_fusion(enabled: bool) -> None:
    """Store whether oneDNN's fusion is enabled. It has no effect: groups have a single compiler."""
    change_modes(onednn=bool(enabled))


def onednn_fusion_enabled() -> bool:
    """Return whether oneDNN's fusion is enabled."""
    return modes().onednn


class ExecutorState:
    """The state of a function's executor: the scripted graph, and the plan of the next run."""

    def __init__(self, executor: SimpleExecutor):
        plan = executor.current_plan()
        self.graph = Graph(executor.function.graph)
        self.execution_plans = {executor.function.name: PlanState(Graph(plan.graph), plan.code)}
        self.fallback = PlanState(Graph(executor.plan().graph), executor.plan().code)


class PlanState:
    """A plan: `graph`, and `code` (`str(code)` lists its instructions)."""

    def __init__(self, graph: Graph, code: object):
        self.graph = graph
        self.code = code
