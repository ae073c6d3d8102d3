"""Executors: from a function's graph to a plan, and from a plan to results.

In: a graph and arguments. Out: results. A plan is the optimised graph with its code; plans are kept by what they assume.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.constant_pooling import constant_pooling
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.inline import inline
from rushlight.jit.runtime.code import Code
from rushlight.jit.runtime.interpreter import Interpreter
from rushlight.jit.runtime.objects import set_runner
from rushlight.jit.runtime.specialized import Specialized
from rushlight.jit.tracing.numbers import plain
from rushlight.jit.tracing.scripted_calls import record_call
from rushlight.jit.tracing.state import TracingState, suspended, tracing_state

_lock = threading.RLock()
LAST_GRAPHS = threading.local()
"""The optimised graph that each thread ran last (`last_executed_optimized_graph`)."""


@dataclass(frozen=True)
class ExecutionPlan:
    """A graph as it is run, and its code."""

    graph: Graph
    code: Code


class SimpleExecutor:
    """Runs a function by one plan, which assumes nothing about the arguments."""

    def __init__(self, function: Function):
        self.function = function
        self._plan: ExecutionPlan | None = None
        self._specialized: Specialized | None = None

    def plan(self) -> ExecutionPlan:
        """The plan, made at the first call."""
        if self._plan is None:
            with _lock:
                if self._plan is None:
                    graph = self.function.graph.copy()
                    inline(graph)
                    eliminate_dead_code(graph)
                    constant_pooling(graph)
                    self._specialized = Specialized(graph, self.function.short_name)
                    self._plan = ExecutionPlan(graph, Code(graph, self.function.name))
        return self._plan

    def run(self, arguments: list) -> list:
        """The results for arguments: by native code, once there is some for such arguments, else by the interpreter."""
        plan = self.plan()
        LAST_GRAPHS.graph = plan.graph
        kind = self._specialized.kind_of(arguments)
        if kind is None or (kind.tried and kind.native is None):
            return _INTERPRETER.run(plan.code, arguments)
        results = self._specialized.run(kind, arguments)
        if results is None:
            given = list(arguments)
            start = time.perf_counter()
            results = _INTERPRETER.run(plan.code, arguments)
            self._specialized.note(kind, time.perf_counter() - start, given)
        return results


def executor_of(function: Function) -> SimpleExecutor:
    """The executor of a function."""
    if function._executor is None:
        with _lock:
            if function._executor is None:
                function._executor = SimpleExecutor(function)
    return function._executor


def code_of(function: Function) -> Code:
    """The code of a function that is called by another."""
    return executor_of(function).plan().code


def run_function(function: Function, arguments: list) -> object:
    """Call a function: its result, a tuple of several, or None. A trace that goes on has it as one call."""
    tracing = tracing_state()
    if tracing is not None:
        return _run_traced(tracing, function, arguments)
    results = executor_of(function).run(arguments)
    return results[0] if len(results) == 1 else tuple(results) if results else None


def _run_traced(tracing: TracingState, function: Function, arguments: list) -> object:
    with suspended():
        result = run_function(function, [plain(value) for value in arguments])
    record_call(tracing, function, arguments, result)
    return result


_INTERPRETER = Interpreter(code_of)
set_runner(run_function)
