"""Lint: whether a graph holds together, as a pass.

Requires: nothing. Guarantees: every value is made before it is read, uses are in step, and ifs and loops have the blocks that
they must have; or RuntimeError names the node.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.ir.lint import lint
from rushlight.jit.passes.registry import graph_pass


@graph_pass("Lint", "_jit_pass_lint")
def lint_graph(graph: Graph) -> None:
    """RuntimeError where the graph does not hold together."""
    lint(graph)
