"""Python statements to tree views.

In: `ast.stmt`s and their context. Out: tree views. Stage: jit, frontend.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from rushlight.jit.errors import NotSupportedError, UnsupportedNodeError
from rushlight.jit.frontend.context import SourceContext
from rushlight.jit.frontend.expressions import BINARY_OPERATORS, build_all, build_expression, build_optional
from rushlight.jit.tree_views import (
    Assert,
    Assign,
    AugAssign,
    Break,
    Closure,
    Continue,
    Delete,
    ExprStmt,
    For,
    Ident,
    If,
    NoneLiteral,
    Pass,
    Raise,
    Return,
    Tree,
    While,
    With,
    WithItem,
)

_UNSUPPORTED = {
    ast.AsyncFunctionDef: "async function definitions",
    ast.ClassDef: "class definitions",
    ast.AsyncFor: "async for loops",
    ast.AsyncWith: "async with statements",
    ast.Try: "try blocks",
    ast.TryStar: "try blocks",
    ast.Import: "import statements",
    ast.ImportFrom: "import statements",
    ast.Global: "global variables",
    ast.Nonlocal: "nonlocal variables",
    ast.Match: "match statements",
}


def build_statements(context: SourceContext, nodes: list[ast.stmt]) -> list[Tree]:
    """Return the tree views of a block."""
    return [_build(context, node) for node in nodes]


def _build(context: SourceContext, node: ast.stmt) -> Tree:
    builder = _BUILDERS.get(type(node))
    if builder is None:
        what = _UNSUPPORTED.get(type(node), f"{type(node).__name__} statements")
        raise UnsupportedNodeError(context.range(node), f"{what} aren't supported")
    return builder(context, node)


def _build_expression(context: SourceContext, node: ast.Expr) -> Tree:
    return ExprStmt(context.range(node), build_expression(context, node.value))


def _build_assign(context: SourceContext, node: ast.Assign) -> Tree:
    annotation = None
    if node.type_comment:
        annotation = type_comment(context, node, node.type_comment)
    return Assign(context.range(node), build_all(context, node.targets), build_expression(context, node.value), annotation)


def type_comment(context: SourceContext, node: ast.AST, text: str) -> Tree:
    """Return the type expression of a comment; its range is that of the commented node."""
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise NotSupportedError(context.range(node), f"the type comment {text!r} is not a type") from None
    for inner in ast.walk(parsed):
        if isinstance(inner, ast.expr):
            ast.copy_location(inner, node)
    return build_expression(context, parsed)


def _build_annotated_assign(context: SourceContext, node: ast.AnnAssign) -> Tree:
    if node.value is None:
        raise UnsupportedNodeError(context.range(node), "annotated assignments without assigned value aren't supported")
    return Assign(context.range(node), [build_expression(context, node.target)], build_expression(context, node.value),
                  build_expression(context, node.annotation))  # fmt: skip


def _build_augmented_assign(context: SourceContext, node: ast.AugAssign) -> Tree:
    operator = BINARY_OPERATORS[type(node.op)]
    target, value = build_expression(context, node.target), build_expression(context, node.value)
    return AugAssign(context.range(node), target, operator, value)


def _build_delete(context: SourceContext, node: ast.Delete) -> Tree:
    return Delete(context.range(node), build_all(context, node.targets))


def _build_return(context: SourceContext, node: ast.Return) -> Tree:
    where = context.range(node)
    return Return(where, NoneLiteral(where) if node.value is None else build_expression(context, node.value))


def _build_raise(context: SourceContext, node: ast.Raise) -> Tree:
    if node.exc is None:
        raise NotSupportedError(context.range(node), "raise without an exception is not supported")
    return Raise(context.range(node), build_expression(context, node.exc))


def _build_assert(context: SourceContext, node: ast.Assert) -> Tree:
    return Assert(context.range(node), build_expression(context, node.test), build_optional(context, node.msg))


def _build_while(context: SourceContext, node: ast.While) -> Tree:
    if node.orelse:
        raise NotSupportedError(context.range(node), "else branches of while loops aren't supported")
    return While(context.word(node, "while"), build_expression(context, node.test), build_statements(context, node.body))


def _build_for(context: SourceContext, node: ast.For) -> Tree:
    if node.orelse:
        raise NotSupportedError(context.range(node), "else branches of for loops aren't supported")
    targets, iterables = build_all(context, [node.target]), build_all(context, [node.iter])
    return For(context.word(node, "for"), targets, iterables, build_statements(context, node.body))


def _build_if(context: SourceContext, node: ast.If) -> Tree:
    branches = build_statements(context, node.body), build_statements(context, node.orelse)
    return If(context.word(node, "if"), build_expression(context, node.test), *branches)


def _build_with(context: SourceContext, node: ast.With) -> Tree:
    items = [
        WithItem(
            context.range(item.context_expr),
            build_expression(context, item.context_expr),
            build_optional(context, item.optional_vars),
        )
        for item in node.items
    ]
    return With(context.word(node, "with"), items, build_statements(context, node.body))


def _build_closure(context: SourceContext, node: ast.FunctionDef) -> Tree:
    where = context.word(node, "def")
    if not context.is_archive or ast.unparse(node.args) or node.decorator_list:
        raise UnsupportedNodeError(where, "function definitions aren't supported")
    return Closure(where, Ident(where, node.name), build_statements(context, node.body))


def _build_word(tree: type[Tree], word: str) -> Callable:
    return lambda context, node: tree(context.word(node, word))


_BUILDERS: dict[type, Callable[[SourceContext, ast.stmt], Tree]] = {
    ast.Expr: _build_expression,
    ast.Assign: _build_assign,
    ast.AnnAssign: _build_annotated_assign,
    ast.AugAssign: _build_augmented_assign,
    ast.Delete: _build_delete,
    ast.Return: _build_return,
    ast.Raise: _build_raise,
    ast.Assert: _build_assert,
    ast.While: _build_while,
    ast.For: _build_for,
    ast.If: _build_if,
    ast.With: _build_with,
    ast.FunctionDef: _build_closure,
    ast.Pass: _build_word(Pass, "pass"),
    ast.Break: _build_word(Break, "break"),
    ast.Continue: _build_word(Continue, "continue"),
}
