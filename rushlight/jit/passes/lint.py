"""Lint: check a graph's invariants, as a pass.

Requires: nothing. Guarantees: every value is defined before its uses, use lists are consistent, and ifs and loops have the
right blocks; or RuntimeError names the node.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.ir.lint import lint
from rushlight.jit.passes.registry import graph_pass


@graph_pass("Lint", "_jit_pass_lint")
def lint_graph(graph: Graph) -> None:
    """Raise RuntimeError if an invariant is violated."""
    lint(graph)
