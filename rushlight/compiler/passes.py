"""The list of graph passes that run between capture and backend, in order. A pass edits a GraphModule in place."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.aot.functionalize import functionalize
from rushlight.fx.graph_module import GraphModule

Pass = Callable[[GraphModule], None]


def eliminate_dead_code(module: GraphModule) -> None:
    """Remove nodes whose results nothing uses. Guarantees: every remaining node is used, or writes to memory."""
    module.graph.eliminate_dead_code()


def check(module: GraphModule) -> None:
    """Lint the graph and generate its code."""
    module.graph.lint()
    module.recompile()


PIPELINE: list[Pass] = [functionalize, eliminate_dead_code, check]
