"""Python expressions to tree views.

In: an `ast.expr` and its context. Out: a tree view. NotSupportedError for syntax that TorchScript lacks. Stage: jit, frontend.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from rushlight.jit.errors import ErrorReport, NotSupportedError, UnsupportedNodeError
from rushlight.jit.frontend.context import SourceContext
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import (
    Apply,
    Attribute,
    BinOp,
    Const,
    DictComp,
    DictLiteral,
    Dots,
    FalseLiteral,
    Ident,
    ListComp,
    ListLiteral,
    NoneLiteral,
    Select,
    SliceExpr,
    Starred,
    StringLiteral,
    Subscript,
    TernaryIf,
    Tree,
    TrueLiteral,
    TupleLiteral,
    UnaryOp,
    Var,
)

BINARY_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.Mod: "%", ast.FloorDiv: "//", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitXor: "^", ast.BitOr: "|", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_UNARY_OPERATORS = {ast.Not: "not", ast.USub: "-", ast.Invert: "~"}
_COMPARISONS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_UNSUPPORTED = {
    ast.Lambda: "lambda expressions",
    ast.Set: "set literals",
    ast.SetComp: "set comprehensions",
    ast.Await: "await expressions",
    ast.Yield: "yield expressions",
    ast.YieldFrom: "yield from expressions",
    ast.NamedExpr: "assignment expressions (:=)",
}


def build_expression(context: SourceContext, node: ast.expr) -> Tree:
    """Return the tree view of an expression."""
    builder = _BUILDERS.get(type(node))
    if builder is None:
        what = _UNSUPPORTED.get(type(node), f"{type(node).__name__} expressions")
        raise UnsupportedNodeError(context.range(node), f"{what} aren't supported")
    return builder(context, node)


def build_all(context: SourceContext, nodes: list[ast.expr]) -> list[Tree]:
    """Return the tree views of several expressions."""
    return [build_expression(context, node) for node in nodes]


def build_optional(context: SourceContext, node: ast.expr | None) -> Tree | None:
    """Return the tree view of an expression that may be missing."""
    return None if node is None else build_expression(context, node)


def binary(where: SourceRange, operator: str, left: Tree, right: Tree) -> Tree:
    """Build `left operator right`. `not in` becomes `not (left in right)`."""
    if operator == "not in":
        return UnaryOp(where, "not", BinOp(where, "in", left, right))
    return BinOp(where, operator, left, right)


def _build_name(context: SourceContext, node: ast.Name) -> Tree:
    where = context.range(node)
    if node.id.startswith("__jit"):
        raise NotSupportedError(where, f"names that begin with '__jit' are reserved, so {node.id!r} can't be used")
    return Dots(where) if node.id == "Ellipsis" else Var(where, Ident(where, node.id))


def _build_constant(context: SourceContext, node: ast.Constant) -> Tree:
    where, value = context.range(node), node.value
    if value is None:
        return NoneLiteral(where)
    if value is Ellipsis:
        return Dots(where)
    if isinstance(value, bool):
        return TrueLiteral(where) if value else FalseLiteral(where)
    if isinstance(value, str):
        return StringLiteral(where, value)
    if isinstance(value, int) and value >= 2**63:
        raise ErrorReport(where, f"Integral constant out of range: {value} does not fit an int of 64 bits")
    if isinstance(value, int | float | complex):
        return Const(where, repr(value))
    raise NotSupportedError(where, f"{type(value).__name__} literals aren't supported")


def _build_attribute(context: SourceContext, node: ast.Attribute) -> Tree:
    return Select(context.range(node), build_expression(context, node.value),
                  Ident(context.last_name(node, node.attr), node.attr))  # fmt: skip


def _build_call(context: SourceContext, node: ast.Call) -> Tree:
    attributes = []
    for keyword in node.keywords:
        if keyword.arg is None:
            raise NotSupportedError(context.range(keyword), "keyword-arg expansion is not supported")
        attributes.append(Attribute(context.range(keyword), Ident(context.word(keyword, keyword.arg), keyword.arg),
                                    build_expression(context, keyword.value)))  # fmt: skip
    return Apply(context.range(node), build_expression(context, node.func), build_all(context, node.args), attributes)


def _build_starred(context: SourceContext, node: ast.Starred) -> Tree:
    return Starred(context.range(node), build_expression(context, node.value))


def _build_binary(context: SourceContext, node: ast.BinOp) -> Tree:
    return BinOp(context.range(node), BINARY_OPERATORS[type(node.op)], build_expression(context, node.left),
                 build_expression(context, node.right))  # fmt: skip


def _build_unary(context: SourceContext, node: ast.UnaryOp) -> Tree:
    operator = _UNARY_OPERATORS.get(type(node.op))
    if operator is None:
        raise NotSupportedError(context.range(node), "unsupported unary operator: +")
    return UnaryOp(context.range(node), operator, build_expression(context, node.operand))


def _build_boolean(context: SourceContext, node: ast.BoolOp) -> Tree:
    operator = "and" if isinstance(node.op, ast.And) else "or"
    values = build_all(context, node.values)
    result = values[0]
    for value in values[1:]:
        result = BinOp(result.range.merged(value.range), operator, result, value)
    return result


def _build_compare(context: SourceContext, node: ast.Compare) -> Tree:
    operands = build_all(context, [node.left, *node.comparators])
    result = None
    for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
        where = left.range.merged(right.range)
        compared = binary(where, _COMPARISONS[type(operator)], left, right)
        result = compared if result is None else BinOp(result.range.merged(where), "and", result, compared)
    return result


def _build_conditional(context: SourceContext, node: ast.IfExp) -> Tree:
    parts = build_all(context, [node.test, node.body, node.orelse])
    return TernaryIf(context.range(node), *parts)


def _build_subscript(context: SourceContext, node: ast.Subscript) -> Tree:
    index = node.slice
    parts = index.elts if isinstance(index, ast.Tuple) and index.elts else [index]
    for part in parts:
        if isinstance(part, ast.Starred):
            raise NotSupportedError(context.range(part), "starred expressions in a subscript aren't supported")
    return Subscript(context.range(node), build_expression(context, node.value), build_all(context, parts))


def _build_slice(context: SourceContext, node: ast.Slice) -> Tree:
    parts = [build_optional(context, part) for part in (node.lower, node.upper, node.step)]
    return SliceExpr(context.range(node), *parts)


def _build_list(context: SourceContext, node: ast.List) -> Tree:
    return ListLiteral(context.range(node), build_all(context, node.elts))


def _build_tuple(context: SourceContext, node: ast.Tuple) -> Tree:
    return TupleLiteral(context.range(node), build_all(context, node.elts))


def _build_dict(context: SourceContext, node: ast.Dict) -> Tree:
    if any(key is None for key in node.keys):
        raise NotSupportedError(context.range(node), "dict expansion (**) in a dict literal is not supported")
    return DictLiteral(context.range(node), build_all(context, node.keys), build_all(context, node.values))


def _build_generator(context: SourceContext, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> tuple[Tree, Tree]:
    if len(node.generators) != 1:
        raise NotSupportedError(context.range(node), "only a single generator is supported in a comprehension")
    generator = node.generators[0]
    if generator.ifs:
        raise NotSupportedError(context.range(generator.ifs[0]), "Comprehension ifs are not supported yet")
    return build_expression(context, generator.target), build_expression(context, generator.iter)


def _list_comprehension(context: SourceContext, node: ast.ListComp | ast.GeneratorExp) -> Tree:
    return ListComp(context.range(node), build_expression(context, node.elt), *_build_generator(context, node))


def _build_dict_comprehension(context: SourceContext, node: ast.DictComp) -> Tree:
    key, value = build_all(context, [node.key, node.value])
    return DictComp(context.range(node), key, value, *_build_generator(context, node))


def _format_string(context: SourceContext, node: ast.JoinedStr) -> Tree:
    where, text, values = context.range(node), "", []
    for part in node.values:
        if isinstance(part, ast.Constant):
            is_field = "{}" in part.value  # aten::format would replace a literal {} by a value
            text += "{}" if is_field else part.value
            values += [StringLiteral(where, part.value)] if is_field else []
            continue
        if part.conversion != -1:
            raise NotSupportedError(where, "conversions (!r, !s, !a) in f-strings aren't supported")
        if part.format_spec is not None:
            raise NotSupportedError(where, "format specifications in f-strings aren't supported")
        text += "{}"
        values.append(build_expression(context, part.value))
    return Apply(where, Select(where, StringLiteral(where, text), Ident(where, "format")), values, [])


_BUILDERS: dict[type, Callable[[SourceContext, ast.expr], Tree]] = {
    ast.Name: _build_name,
    ast.Constant: _build_constant,
    ast.Attribute: _build_attribute,
    ast.Call: _build_call,
    ast.Starred: _build_starred,
    ast.BinOp: _build_binary,
    ast.UnaryOp: _build_unary,
    ast.BoolOp: _build_boolean,
    ast.Compare: _build_compare,
    ast.IfExp: _build_conditional,
    ast.Subscript: _build_subscript,
    ast.Slice: _build_slice,
    ast.List: _build_list,
    ast.Tuple: _build_tuple,
    ast.Dict: _build_dict,
    ast.ListComp: _list_comprehension,
    ast.GeneratorExp: _list_comprehension,  # TorchScript makes a list of all elements
    ast.DictComp: _build_dict_comprehension,
    ast.JoinedStr: _format_string,
}
