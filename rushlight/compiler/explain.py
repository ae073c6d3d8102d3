"""`explain`: reports dynamo's captures of a function: graphs, graph breaks with reasons, guards, operators, times.

In: a function and arguments. Out: an `Explanation`. The function runs once and is captured again; its graphs run in eager.
"""

from __future__ import annotations

import time
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from traceback import FrameSummary
from typing import Any

from rushlight.compiler.compile import innermost
from rushlight.core.tensor import Tensor
from rushlight.dynamo.frames import FrameCallback, Log
from rushlight.dynamo.graph_builder import Backend
from rushlight.dynamo.guarded_code import GuardedCode
from rushlight.dynamo.guards import Guard
from rushlight.dynamo.regions import optimize
from rushlight.fx.annotations import PACKAGE_FOLDER
from rushlight.fx.graph_module import GraphModule


@dataclass(frozen=True)
class BreakReason:
    """The reason for a graph break, and its place: `file` and `line` are the innermost of `user_stack`."""

    reason: str
    user_stack: list[FrameSummary]
    hint: str = ""

    @property
    def file(self) -> str:
        """Return the program's file."""
        return self.user_stack[-1].filename if self.user_stack else ""

    @property
    def line(self) -> int:
        """Return the line in that file."""
        return self.user_stack[-1].lineno if self.user_stack else 0

    def is_within(self, outer: BreakReason) -> bool:
        """Return whether this is the same break as `outer`, met once more when a function that `outer` went through is captured
        on its own."""
        own, other = (each._program_lines() for each in (self, outer))
        return self.reason == outer.reason and bool(own) and other[-len(own) :] == own

    def _program_lines(self) -> list[tuple[str, int | None]]:
        frames = [frame for frame in self.user_stack if not frame.filename.startswith(PACKAGE_FOLDER)]
        return [(frame.filename, frame.lineno) for frame in frames]

    def __str__(self) -> str:
        lines = [f"    {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}" for frame in self.user_stack]
        return "\n".join([f"  {self.reason}", *lines, *([f"    Hint: {self.hint}"] if self.hint else [])])


@dataclass
class Explanation:
    """The captures of one run. `compile_times` are (name, seconds) of each captured frame."""

    graphs: list[GraphModule] = field(default_factory=list)
    break_reasons: list[BreakReason] = field(default_factory=list)
    out_guards: list[Guard] = field(default_factory=list)
    guards: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    compile_times: list[tuple[str, float]] = field(default_factory=list)

    @property
    def graph_count(self) -> int:
        """Return the number of graphs."""
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """Return the number of graph breaks."""
        return len(self.break_reasons)

    @property
    def ops_per_graph(self) -> list[list[Any]]:
        """Return the functions and methods that each graph calls, in order."""
        return [[node.target for node in graph.graph.nodes if node.op.startswith("call_")] for graph in self.graphs]

    @property
    def op_count(self) -> int:
        """Return the number of calls in the graphs."""
        return sum(map(len, self.ops_per_graph))

    def __str__(self) -> str:
        operators = [f"  graph {index}: {', '.join(map(_name, found))}" for index, found in enumerate(self.ops_per_graph)]
        times = [f"  {name}: {seconds:.3f} s" for name, seconds in self.compile_times]
        parts = [
            f"Graph Count: {self.graph_count}\nGraph Break Count: {self.graph_break_count}\nOp Count: {self.op_count}",
            "\n".join(["Break Reasons:", *map(str, self.break_reasons)]),
            "\n".join(["Ops per Graph:", *operators]),
            "\n".join(["Out Guards:", *(f"  {guard}" for guard in self.guards)]),
            "\n".join(["Compile Times:", *times]),
        ]
        return "\n".join(parts)

    def print_readable(self) -> None:
        """Print each graph as Python."""
        for graph in self.graphs:
            graph.print_readable()


def _name(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


class _Observer(FrameCallback):
    """Records the result of each capture."""

    def __init__(self, explanation: Explanation):
        super().__init__(self._keep_graph)
        self.explanation = explanation
        self._began = 0.0

    def begin(self, code: types.CodeType) -> tuple[Backend, Log]:
        """Start the clock."""
        self._began = time.perf_counter()
        return super().begin(code)

    def _keep_graph(self, module: GraphModule, inputs: list[Tensor]) -> Callable:
        self.explanation.graphs.append(module)
        return module.forward

    def finished(self, frame: Any, found: GuardedCode) -> None:
        """Record a frame's guards, text, time, and graph break."""
        seen = self.explanation
        seen.compile_times.append((frame.f_code.co_qualname, time.perf_counter() - self._began))
        seen.out_guards += found.guards.guards
        seen.guards += found.guards.texts()
        seen.sources.append(found.source)
        if found.break_reason is not None:
            reason = BreakReason(found.break_reason.reason, found.break_reason.user_stack, found.break_reason.hint)
            if not (seen.break_reasons and reason.is_within(seen.break_reasons[-1])):
                seen.break_reasons.append(reason)


def explain(f: Callable) -> Callable[..., Explanation]:
    """Return a function that runs `f` once and returns an Explanation.

    `f`'s side effects happen, and its exceptions pass through.
    """

    def run(*args: Any, **kwargs: Any) -> Explanation:
        explanation = Explanation()
        observer = _Observer(explanation)
        try:
            optimize(observer)(innermost(f))(*args, **kwargs)
        finally:
            observer.forget()
        return explanation

    return run
