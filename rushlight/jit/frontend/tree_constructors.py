"""Tree views by PyTorch's constructors: `torch._C._jit_tree_views`, in which a tree derives its range from its parts.

In: the arguments that PyTorch's classes of these names take. Out: trees of `tree_views.py`, whose constructors take the source
range first. `isinstance` with a class of this module holds for those trees. Stage: jit, frontend.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from rushlight.jit import tree_views as views
from rushlight.jit.source import NO_SOURCE, Source, SourceRange
from rushlight.jit.tree_printing import Tree


class _Constructed(type):
    """A tree class with PyTorch's constructor: a call makes a tree of `kinds[0]` by `make`."""

    kinds: tuple[type[Tree], ...]
    make: Callable[..., Tree] | None

    def __call__(cls, *arguments: Any) -> Tree:
        if cls.make is None:
            raise TypeError(f"{cls.__name__} is a kind of tree; make one of the trees of this kind")
        return cls.make(*arguments)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.kinds)


def _kind(name: str, kinds: Iterable[type[Tree]], make: Callable[..., Tree] | None = None, *bases: type) -> type:
    kinds = tuple(kinds)
    text = kinds[0].__doc__ if make is not None else f"Base of tree views: {name}."
    members = {"kinds": kinds, "make": make and staticmethod(make), "__doc__": text, "__module__": __name__}
    return _Constructed(name, bases, members)


def _joint_range(*trees: Tree | None) -> SourceRange:
    """Return the range that spans several trees of one source; the first one's range if their sources differ."""
    found = [tree.range for tree in trees if tree is not None]
    if not found or any(each.source is not found[0].source for each in found):
        return found[0] if found else NO_SOURCE
    return functools.reduce(SourceRange.merged, found)


def _in_order(kind: type[Tree]) -> Callable[..., Tree]:
    """Return a constructor that takes the range first and then the fields in order; sequences become lists."""
    return lambda where, *parts: kind(where, *map(_tuple_to_list, parts))


def _tuple_to_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _make_assign(targets: Iterable[Tree], value: Tree | None, annotation: Tree | None = None) -> Tree:
    targets = list(targets)
    return views.Assign(_joint_range(*targets, value), targets, value, annotation)


def _make_class_def(ident: views.Ident, body: Iterable[Tree], properties: Iterable[Tree], assigns: Iterable[Tree]) -> Tree:
    return views.ClassDef(ident.range, ident, list(body), None, list(properties), list(assigns))


def _make_apply(callee: Tree, inputs: Iterable[Tree], attributes: Iterable[Tree]) -> Tree:
    inputs, attributes = list(inputs), list(attributes)
    return views.Apply(_joint_range(callee, *inputs, *attributes), callee, inputs, attributes)


def _make_subscript(value: Tree, subscripts: Iterable[Tree]) -> Tree:
    subscripts = list(subscripts)
    return views.Subscript(_joint_range(value, *subscripts), value, subscripts)


_EXPRESSIONS: dict[str, Callable[..., Tree]] = {
    **{name: _in_order(getattr(views, name)) for name in (
        "Const", "DictComp", "DictLiteral", "Dots", "FalseLiteral", "ListComp", "ListLiteral", "NoneLiteral", "SliceExpr",
        "Starred", "StringLiteral", "TrueLiteral", "TupleLiteral", "UnaryOp", "WithItem",
    )},
    "Apply": _make_apply,
    "BinOp": lambda operator, left, right: views.BinOp(_joint_range(left, right), operator, left, right),
    "Select": lambda value, selector: views.Select(_joint_range(value, selector), value, selector),
    "Subscript": _make_subscript,
    "TernaryIf": lambda condition, true, false: views.TernaryIf(_joint_range(condition, true, false), condition, true, false),
    "Var": lambda ident: views.Var(ident.range, ident),
}  # fmt: skip
_STATEMENTS: dict[str, Callable[..., Tree]] = {
    **{name: _in_order(getattr(views, name)) for name in (
        "Assert", "Break", "Continue", "Delete", "For", "If", "Pass", "Raise", "Return", "While", "With",
    )},
    "Assign": _make_assign,
    "AugAssign": lambda target, operator, value: views.AugAssign(
        _joint_range(target, value), target, operator.strip("="), value
    ),
    "ExprStmt": lambda expression: views.ExprStmt(expression.range, expression),
}  # fmt: skip
_OTHERS: dict[str, Callable[..., Tree]] = {
    "Attribute": lambda ident, value: views.Attribute(_joint_range(ident, value), ident, value),
    "ClassDef": _make_class_def,
    "Decl": _in_order(views.Decl),
    "Def": lambda ident, decl, body: views.Def(ident.range, ident, decl, list(body)),
    "Ident": _in_order(views.Ident),
    "Param": lambda annotation, ident, kwarg_only: views.Param(ident.range, annotation, ident, bool(kwarg_only)),
    "Property": _in_order(views.Property),
}

TreeView = _kind("TreeView", [Tree])
Expr = _kind("Expr", [getattr(views, name) for name in _EXPRESSIONS], None, TreeView)
Stmt = _kind("Stmt", [getattr(views, name) for name in _STATEMENTS], None, TreeView)

TREES: dict[str, type] = {"TreeView": TreeView, "Expr": Expr, "Stmt": Stmt} | {
    name: _kind(name, [getattr(views, name)], make, base)
    for base, made in ((Expr, _EXPRESSIONS), (Stmt, _STATEMENTS), (TreeView, _OTHERS)) for name, make in made.items()
}  # fmt: skip
"""The classes by name."""


class SourceRangeFactory:
    """Makes the ranges of one text, whose syntax tree was parsed without its first `leading_whitespace_chars` columns.
    `file_lineno` is the number, from 1, of its first line in the file."""

    def __init__(self, text: str, filename: str | None, file_lineno: int, leading_whitespace_chars: int):
        self.text = Source(text, filename, max(0, file_lineno - 1))
        self.leading_whitespace = leading_whitespace_chars

    def make_range(self, line: int, start_col: int, end_col: int) -> SourceRange:
        """Return the range between two columns of a line, which counts from 1."""
        return self.text.make_range(line, start_col + self.leading_whitespace, end_col + self.leading_whitespace)

    def make_raw_range(self, start: int, end: int) -> SourceRange:
        """Return the range between two characters of the text."""
        return SourceRange(self.text, start, end)
