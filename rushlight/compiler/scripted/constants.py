"""Splits constant tuples of a jit graph, so that loops and branches can carry their elements."""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Value
from rushlight.jit.passes.helpers import constant_before, insert_before, replace_with
from rushlight.jit.types.kinds import TupleType


def make_tuples(graph: Graph) -> None:
    """Replace constants that are tuples by `prim::TupleConstruct` of their elements."""
    for node in list(graph.all_nodes()):
        if node.kind == "prim::Constant" and isinstance(node.output.type, TupleType) and node.output.type.name is None:
            elements = [_element(node.output, index) for index in range(len(node.output.type.elements))]
            replace_with(node, insert_before(node, "prim::TupleConstruct", elements, node.output.type))


def _element(value: Value, index: int) -> Value:
    return constant_before(value.node, value.constant()[index], value.type.elements[index])
