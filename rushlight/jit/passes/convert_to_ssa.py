"""ConvertToSSA, with exit transforms: variables and exits become values.

Requires: a graph as the emitter writes it: `prim::Load` and `prim::Store` of variables, `prim::ReturnStmt`, `prim::BreakStmt`
and `prim::ContinueStmt`, while loops with a block for their condition; its results come from returns. Guarantees: none of these
is left; ifs have outputs, loops carry values, and code after a possible exit is guarded by an if.
"""

from __future__ import annotations

from rushlight.jit.emit.control_flow import convert_to_ssa as convert
from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.registry import graph_pass


@graph_pass("ConvertToSSA", "TransformExits")
def convert_to_ssa(graph: Graph) -> None:
    """Convert an emitted graph to SSA."""
    convert(graph)
