"""Preparation: turn a function's graph into the one that an executor runs, optimized without assumptions.

In: a graph with calls. Out: a copy with inlined calls and without dead code. A trace's tensor arithmetic on sizes and constant
0-dim tensors in arithmetic become numbers, and constants are pooled at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.canonicalize_ops import use_numbers
from rushlight.jit.passes.constant_pooling import constant_pooling
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.inline import inline
from rushlight.jit.passes.lower_tuples import lower_simple_tuples
from rushlight.jit.passes.size_arithmetic import size_arithmetic

PASSES: tuple[Callable[[Graph], object], ...] = (
    inline, lower_simple_tuples, size_arithmetic, use_numbers, eliminate_dead_code, constant_pooling,
)  # fmt: skip


def prepared(graph: Graph) -> Graph:
    """Return a copy of a graph, prepared for an executor."""
    made = graph.copy()
    for graph_pass in PASSES:
        graph_pass(made)
    return made
