"""ConvertToSSA, with exit transforms: variables and exits become values.

Requires: a graph as the emitter writes it: `prim::Load` and `prim::Store` of variables, `prim::ReturnStmt`, `prim::BreakStmt`
and `prim::ContinueStmt`, while loops with a block for their condition; its result is what returns give.
Guarantees: none of these is left; ifs have outputs, loops carry values, and what follows a possible exit stands in an if.
"""

from __future__ import annotations

from rushlight.jit.emit.control_flow import convert_to_ssa as convert
from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.registry import graph_pass


@graph_pass("ConvertToSSA", "TransformExits")
def convert_to_ssa(graph: Graph) -> None:
    """Bring an emitted graph into SSA."""
    convert(graph)
