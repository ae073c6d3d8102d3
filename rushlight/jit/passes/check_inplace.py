"""CheckInplace: calls of Python functions that write to their arguments can't be optimised, so they are errors.

Requires: nothing. Guarantees: the graph contains no `prim::PythonOp` with its `inplace` attribute set, or RuntimeError names
it.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.registry import graph_pass


@graph_pass("CheckInplace")
def check_inplace(graph: Graph) -> None:
    """Raise RuntimeError for a Python function that works in place."""
    for node in graph.all_nodes():
        if node.kind == "prim::PythonOp" and node.attributes.get("inplace"):
            name = node.attributes.get("name", node.kind)
            raise RuntimeError(f"inplace {name} not supported in the JIT: return a new tensor")
