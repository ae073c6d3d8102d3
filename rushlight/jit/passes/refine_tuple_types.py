"""RefineTupleTypes: derive tuple types from their elements.

Requires: SSA, other types refined already. Guarantees: the type of a `prim::TupleConstruct` follows from its inputs, and those
of the results of a `prim::TupleUnpack` from its input. Names and fields of NamedTuples stay.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TupleType
from rushlight.jit.types.relations import is_subtype

_LOG = PassLog(__file__)


@graph_pass("RefineTupleTypes", "_jit_pass_refine_tuple_types")
def refine_tuple_types(graph: Graph) -> None:
    """Set the types of tuples and of unpacked elements."""
    for node in graph.all_nodes():
        if node.kind == "prim::TupleConstruct" and isinstance(node.output.type, TupleType):
            node.output.type = node.output.type.with_contained(tuple(value.type for value in node.inputs))
            _LOG.debug("{} has type {}", node.output, node.output.type.ir_text)
        elif node.kind == "prim::TupleUnpack" and isinstance(node.input().type, TupleType):
            for value, kind in zip(node.outputs, node.input().type.elements, strict=True):
                value.type = kind if is_subtype(kind, value.type) else value.type
