"""Parse constants in an archive's code: defaults of arguments, attributes of type Final, members of enumerations.

In: an expression of Python's `ast`. Out: a value. ErrorReport for an expression that is no constant. Stage: jit, loading.
"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from rushlight.core.device import device
from rushlight.jit.errors import ErrorReport
from rushlight.jit.frontend.context import SourceContext
from rushlight.jit.types.kinds import EnumType

if TYPE_CHECKING:
    from rushlight.jit.serialization.importer import Importer

_NAMED = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "nanj": complex(0, math.nan)}


def literal_value(node: ast.expr, context: SourceContext, importer: Importer) -> object:
    """Return the value of a constant expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | complex | str | None):
        return node.value
    if isinstance(node, ast.Name) and node.id in _NAMED:
        return _NAMED[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal_value(node.operand, context, importer)
        if type(value) in (int, float, complex):
            return -value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return _complex_value(node, context, importer)
    if isinstance(node, ast.List | ast.Tuple):
        items = [literal_value(item, context, importer) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict) and None not in node.keys:
        values = (node.keys, node.values)
        keys, items = ([literal_value(item, context, importer) for item in each] for each in values)
        return dict(zip(keys, items, strict=True))
    if isinstance(node, ast.Call):
        return _call_value(node, context, importer)
    found = _attribute_value(node, context, importer)
    if found is NotImplemented:
        raise ErrorReport(context.range(node), "only constants may stand here")
    return found


def _complex_value(node: ast.BinOp, context: SourceContext, importer: Importer) -> complex:
    left, right = (literal_value(each, context, importer) for each in (node.left, node.right))
    if type(left) in (int, float) and type(right) is complex:
        return complex(left, right.imag if isinstance(node.op, ast.Add) else -right.imag)
    raise ErrorReport(context.range(node), "only constants may stand here")


def _call_value(node: ast.Call, context: SourceContext, importer: Importer) -> object:
    """Evaluate `annotate(List[int], [])` or `torch.device("cpu")`."""
    name = ast.unparse(node.func)
    if name == "annotate" and len(node.args) == 2:
        return literal_value(node.args[1], context, importer)
    if name == "torch.device" and len(node.args) == 1:
        text = literal_value(node.args[0], context, importer)
        if isinstance(text, str):
            return device(text)
    raise ErrorReport(context.range(node), "only constants may stand here")


def _attribute_value(node: ast.expr, context: SourceContext, importer: Importer) -> object:
    """Evaluate `CONSTANTS.c0` or a member of an enumeration."""
    if not isinstance(node, ast.Attribute):
        return NotImplemented
    base = ast.unparse(node.value)
    if base == "CONSTANTS":
        return importer.resolver.constant(node.attr, context.range(node))
    kind = importer.find_type(base) if base.startswith("__torch__.") else None
    if isinstance(kind, EnumType) and node.attr in kind.python_class.__members__:
        return kind.python_class[node.attr]
    return NotImplemented
