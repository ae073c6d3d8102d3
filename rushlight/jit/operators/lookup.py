"""The operator that a node runs, its side effects, and the inputs that it writes to."""

from __future__ import annotations

from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.registry import MAX_MATCHED, Operator, matched, operators_named
from rushlight.jit.schema import FunctionSchema
from rushlight.jit.types.relations import NoMatch, is_subtype, match_variables

EFFECTS = frozenset(
    ("prim::Print", "prim::RaiseException", "prim::SetAttr", "aten::warn", "prim::Enter", "prim::Exit", "prim::CallMethod",
     "prim::CallFunction", "prim::fork", "prim::forkClosure", "prim::awaitable", "prim::Store", "prim::ReturnStmt",
     "prim::BreakStmt", "prim::ContinueStmt", "prim::profile", "prim::IgnoredPythonOp", "prim::PythonOp", "aten::wait",
     "prim::AddStatValue", "prim::TimePoint", "aten::manual_seed", "aten::set_grad_enabled", "prim::BailOut")
)  # fmt: skip


def operator_of(node: Node) -> Operator | None:
    """Return the overload that a node's inputs fit; None for a node that is no operator."""
    key = (node.kind, len(node.outputs), *[value.type for value in node.inputs])
    found = matched.get(key, matched)
    if found is matched:
        found = next((each for each in operators_named(node.kind) if schema_fits(each.schema, node)), None)
        if len(matched) >= MAX_MATCHED:
            matched.clear()
        matched[key] = found
    return found


def schema_fits(schema: FunctionSchema, node: Node) -> bool:
    """Return whether a node's inputs fit a schema, in number and type."""
    inputs = node.inputs
    if len(inputs) != len(schema.arguments) and not (schema.is_vararg and len(inputs) >= len(schema.arguments)):
        return False
    bound: dict = {}
    for argument, value in zip(schema.arguments, inputs, strict=False):
        try:
            if not is_subtype(value.type, match_variables(argument.type, value.type, bound)):
                return False
        except NoMatch:
            return False
    return len(node.outputs) == len(schema.returns) or schema.is_varret


def has_side_effects(node: Node) -> bool:
    """Return whether running a node has effects other than its results and its writes to inputs."""
    if node.kind in EFFECTS:
        return True
    operator = operator_of(node) if "::" in node.kind and not node.kind.startswith("prim::") else None
    return operator is not None and operator.has_side_effects and not operator.schema.is_mutable


def writes(node: Node) -> list[Value]:
    """Return the inputs that a node writes to."""
    operator = operator_of(node) if node.kind.startswith("aten::") else None
    if operator is None:
        return []
    return [value for argument, value in zip(operator.schema.arguments, node.inputs, strict=False) if argument.is_write]
