"""Reject graphs with operators that have no native form."""

from __future__ import annotations

import operator

from rushlight.deploy.spelling import NotExportable
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.inductor.support import is_supported
from rushlight.inductor.write_backs import is_write_back
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten

MAY_FAIL = (RuntimeError, ArithmeticError, ValueError, TypeError, LookupError, NotImplementedError)
"""Exceptions that a program's code may raise for unsupported sizes."""
_WRITES = " (a write to an input or buffer is native if its elements are real numbers without gaps between them)"


def refuse_unsupported(module: GraphModule, name: str) -> None:
    """Raise NotExportable for a graph with operators that have no native form; lists them with their source lines."""
    found: dict[str, None] = {}
    for node in module.graph.nodes:
        is_part = node.target is operator.getitem  # the operator whose result this takes apart is listed itself
        if node.op == "call_function" and not is_part and not is_supported(node) and not is_write_back(node):
            found[_describe_node(node)] = None
    if module.meta.get("keep_eager"):
        found[f"  {module.meta['keep_eager']}"] = None
    if found:
        raise _make_error(name, list(found))


def refuse_kept_eager(module: GraphModule, name: str) -> None:
    """Raise NotExportable for a graph whose writes have no functional form."""
    if module.meta.get("keep_eager"):
        raise _make_error(name, [f"  {module.meta['keep_eager']}"])


def refusal_of(name: str, node: Node) -> NotExportable:
    """Return the error for one operator that has no native form."""
    return _make_error(name, [_describe_node(node)])


def _make_error(name: str, lines: list[str]) -> NotExportable:
    return NotExportable("\n".join([f"{name} cannot be exported: these operators have no native form", *lines]))


def _describe_node(node: Node) -> str:
    target = node.target.name if isinstance(node.target, OpOverload) else str(node.target)
    return f"  {target}  at {_line_of(node)}{_WRITES if node.target is aten('copy_') else ''}"


def _line_of(node: Node) -> str:
    lines = [line.strip() for line in (node.stack_trace or "").splitlines() if line.strip()]
    return " ".join(lines[-2:]) if lines else "an unknown line"
