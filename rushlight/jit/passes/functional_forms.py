"""The functional forms of in-place operators, by which passes replace `aten::add_` and its like."""

from __future__ import annotations

from rushlight.jit.ir.graph import Node
from rushlight.jit.operators.lookup import operator_of, schema_fits
from rushlight.jit.operators.registry import operators_named
from rushlight.jit.passes.helpers import constant_before

_OPTIONS = 5
"""The number of options of `zeros_like` and `full_like`: dtype, layout, device, pin_memory, memory_format."""
_SPECIAL = {"aten::zero_": "aten::zeros_like", "aten::fill_": "aten::full_like"}


def functional_kind(node: Node) -> str | None:
    """Return the functional operator of an in-place one; None for other nodes, and if there is no such form."""
    if node.kind in _SPECIAL:
        return _SPECIAL[node.kind]
    name = node.kind
    if not name.startswith("aten::") or not name.endswith("_") or name.endswith("__") or not node.inputs:
        return None
    operator = operator_of(node)
    if operator is None or not operator.schema.arguments[0].is_write or len(node.outputs) != 1:
        return None
    plain = name[:-1]
    return plain if any(schema_fits(each.schema, node) for each in operators_named(plain)) else None


def insert_functional(node: Node, kind: str) -> Node:
    """Insert the functional form of an in-place node before it."""
    inputs = list(node.inputs)
    if node.kind in _SPECIAL:
        inputs += [constant_before(node, None)] * _OPTIONS
    made = node.graph.create(kind, inputs).insert_before(node)
    made.source_range, made.scope = node.source_range, node.scope
    made.output.set_type(node.output.type)
    return made
