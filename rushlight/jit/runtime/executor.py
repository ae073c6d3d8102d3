"""Executors: from a function's graph to a plan, and from a plan to results.

In: a graph and arguments. Out: results. A plan is the optimised graph with its code; plans are cached by their assumptions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from rushlight.core.lazy_module import LazyModule
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.runtime.code import Code
from rushlight.jit.runtime.interpreter import Interpreter
from rushlight.jit.runtime.modes import modes
from rushlight.jit.runtime.native import Native
from rushlight.jit.runtime.objects import set_runner
from rushlight.jit.runtime.restarts import may_restart
from rushlight.jit.runtime.specialized import Kind, Specialized
from rushlight.jit.tracing.state import TracingState, tracing_state
from rushlight.ops.recording import suspended

profiling = LazyModule("rushlight.jit.runtime.profiling")  # lazy: it imports the passes of profiled graphs
numbers, scripted_calls = map(LazyModule, ("rushlight.jit.tracing.numbers", "rushlight.jit.tracing.scripted_calls"))
_lock = threading.RLock()
MAX_SLOWDOWN = 25  # if a loop takes this many times the usual threshold, its run is abandoned for native code
LAST_GRAPHS = threading.local()
"""The optimised graph that each thread ran last (`last_executed_optimized_graph`)."""


@dataclass(frozen=True)
class ExecutionPlan:
    """An optimized graph, and its code."""

    graph: Graph
    code: Code


class Watcher(Protocol):
    """Receives the plans and the interpreted runs of all functions."""

    def planned(self, function: Function, plan: ExecutionPlan) -> None:
        """Receive a function's first plan, before it runs."""

    def interpreting(self, function: Function) -> AbstractContextManager:
        """Return a context in which the interpreter runs a function."""


_watchers: tuple[Watcher, ...] = ()


def watch(watcher: Watcher) -> None:
    """Register a watcher."""
    global _watchers
    with _lock:
        _watchers = (*_watchers, watcher)


def unwatch(watcher: Watcher) -> None:
    """Unregister a watcher."""
    global _watchers
    with _lock:
        _watchers = tuple(each for each in _watchers if each is not watcher)


class SimpleExecutor:
    """Runs a function by one plan without assumptions about arguments, or by native code once it exists."""

    only_whole = False

    def __init__(self, function: Function):
        self.function = function
        self._plan: ExecutionPlan | None = None
        self._specialized: Specialized | None = None
        self._has_loop = False

    def plan(self) -> ExecutionPlan:
        """Return the plan without assumptions, created at the first call."""
        if self._plan is None:
            with _lock:
                if self._plan is None:
                    graph = self._prepare_graph()
                    self._specialized = Specialized(
                        graph, self.function.short_name, only_whole=self.only_whole, kept=self.function.kept
                    )
                    code = Code(graph, self.function.name, is_final=type(self) is SimpleExecutor)
                    self._has_loop = any(op == "LOOP" for op, _, _ in code.instructions)
                    self._plan = ExecutionPlan(graph, code)
                    for watcher in _watchers:
                        watcher.planned(self.function, self._plan)
        return self._plan

    def _prepare_graph(self) -> Graph:
        """Return the function's graph, optimized without assumptions."""
        return self.function.prepared_graph()

    def current_plan(self) -> ExecutionPlan:
        """Return the plan of the next run."""
        return self.plan()

    def run(self, arguments: list) -> list:
        """Return the results: by native code if there is some for such arguments, else by the interpreter."""
        self.plan()
        current = modes()
        kind = self._specialized.kind_of(arguments) if current.optimized and current.fuses else None
        if kind is None or (kind.tried and kind.native is None):
            return self._interpret(arguments)
        results = self._specialized.run(kind, arguments)
        if results is None:
            start = time.perf_counter()
            results = self._interpret_unless_slow(kind, arguments)
            self._specialized.note(kind, time.perf_counter() - start)
        else:
            LAST_GRAPHS.graph = self._plan.graph
        return results

    def natives(self, arguments: list) -> list[Native]:
        """Return the native forms of earlier calls with such a module."""
        self.plan()
        return self._specialized.natives(arguments)

    def _interpret_unless_slow(self, kind: Kind, arguments: list) -> list:
        """Return the results by the interpreter. If a loop takes too long and the run has had no effects yet, compile native
        code and start over."""
        if kind.tried or not self._has_loop:
            return self._interpret(arguments)

        def gives_up() -> bool:
            return may_restart(self._plan.graph) and self._specialized.compile_now(kind, arguments)

        results = self._interpret(arguments, gives_up, max(MAX_SLOWDOWN * kind.limit - kind.seconds, 0.0))
        if results is None:
            results = self._specialized.run(kind, arguments)
        return self._interpret(arguments) if results is None else results

    def _interpret(self, arguments: list, gives_up: Callable[[], bool] | None = None, seconds: float = 0.0) -> list | None:
        """Return the results; None if the interpreter stopped, after asking `gives_up` when a loop had taken this many
        seconds.
        """
        plan = self.current_plan()
        try:
            if _watchers:
                return self._run_watched(plan, arguments, gives_up, seconds)
            return _INTERPRETER.run(plan.code, arguments, gives_up, seconds)
        finally:  # set after the plan is made, because fusion groups in the plan are functions with graphs of their own
            LAST_GRAPHS.graph = plan.graph

    def _run_watched(self, plan: ExecutionPlan, *arguments: Any) -> list | None:
        with ExitStack() as stack:
            for watcher in _watchers:
                stack.enter_context(watcher.interpreting(self.function))
            return _INTERPRETER.run(plan.code, *arguments)


class ProfilingExecutor(SimpleExecutor):
    """Profiles the first runs of a function, and runs later ones by a plan specialized to the observed tensors.

    `depth` limits the chain of plans: tensors that don't fit the first plan go to a fallback function with its own profiling
    executor of depth - 1. Groups of the plan are compiled to native code.
    """

    only_whole = True

    def __init__(self, function: Function, depth: int):
        super().__init__(function)
        self.depth = depth
        self._profiled: ExecutionPlan | None = None
        self._optimized: ExecutionPlan | None = None

    def _prepare_graph(self) -> Graph:
        return profiling.profiling_insensitive(self.function.graph)

    def current_plan(self) -> ExecutionPlan:
        """Return the profiling plan at first, then the specialized one."""
        if self._optimized is not None:
            return self._optimized
        current = modes()
        if self.depth < 1 or not (current.specializes and current.optimized):
            return self.plan()
        with _lock:
            if self._profiled is None:
                self._profiled = self._plan_of(profiling.instrumented(self.plan().graph))
            if self._optimized is None and self._profiled.graph.completed_runs >= current.profiled_runs:
                self._optimized = self._plan_of(profiling.specialized(self._profiled.graph, current, self.depth))
            return self._optimized or self._profiled

    def _plan_of(self, graph: Graph) -> ExecutionPlan:
        return ExecutionPlan(graph, Code(graph, self.function.name, self.depth - 1))


def executor_of(function: Function) -> SimpleExecutor:
    """Return the executor of a function."""
    if function._executor is None:
        with _lock:
            if function._executor is None:
                function._executor = _new_executor(function)
    return function._executor


def _new_executor(function: Function) -> SimpleExecutor:
    current = modes()
    depth = current.depth if function.depth is None else function.depth
    if current.profiling and current.optimized and depth > 0:
        return ProfilingExecutor(function, depth)
    return SimpleExecutor(function)


def interpret(code: Code, arguments: list) -> list:
    """Return the results of a code for arguments, by the interpreter."""
    return _INTERPRETER.run(code, arguments)


def code_of(function: Function) -> Code:
    """Return the code of a called function."""
    return executor_of(function).current_plan().code


def run_function(function: Function, arguments: list) -> object:
    """Call a function: returns its result, a tuple of several, or None. An active trace records one call."""
    tracing = tracing_state()
    if tracing is not None:
        return _run_traced(tracing, function, arguments)
    results = executor_of(function).run(arguments)
    return results[0] if len(results) == 1 else tuple(results) if results else None


def _run_traced(tracing: TracingState, function: Function, arguments: list) -> object:
    with suspended():
        result = run_function(function, [numbers.plain(value) for value in arguments])
    scripted_calls.record_call(tracing, function, arguments, result)
    return result


def last_executed_optimized_graph() -> Graph | None:
    """Return the optimized graph that this thread ran last; None before the first run."""
    return getattr(LAST_GRAPHS, "graph", None)


_INTERPRETER = Interpreter(code_of)
set_runner(run_function)
