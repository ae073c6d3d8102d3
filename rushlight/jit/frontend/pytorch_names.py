"""The frontend under PyTorch's names and signatures: `torch.jit.frontend`, and `torch._C`'s functions for type comments.

In: Python functions, their syntax trees, and contexts that say where these stand. Out: tree views. The work is that of
`definitions.py`, `statements.py` and `expressions.py`. Stage: jit, frontend.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from textwrap import dedent

from rushlight.jit.frontend import definitions
from rushlight.jit.frontend.context import SourceContext as OwnContext
from rushlight.jit.frontend.expressions import build_expression, build_optional
from rushlight.jit.frontend.statements import build_statements
from rushlight.jit.frontend.tree_constructors import SourceRangeFactory
from rushlight.jit.source import Source, SourceRange
from rushlight.jit.tree_views import ClassDef, Decl, Def, Ident, Param, Tree


class SourceContext(OwnContext, SourceRangeFactory):
    """The source ranges of a syntax tree that was parsed after removing the first `leading_whitespace_len` columns of the text.

    `file_lineno` is the number, from 1, of the text's first line in the file; the other arguments are stored.
    """

    def __init__(
        self, source: str, filename: str | None, file_lineno: int, leading_whitespace_len: int,
        uses_true_division: bool = True, funcname: str | None = None,
    ) -> None:  # fmt: skip
        OwnContext.__init__(self, Source(source, filename, max(0, file_lineno - 1)))
        for name, value in {
            "text": self.source, "leading_whitespace": leading_whitespace_len, "uses_true_division": uses_true_division,
            "filename": filename, "funcname": funcname,
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)

    def _offset(self, line: int, column: int) -> int:
        return super()._offset(line, column + self.leading_whitespace)


def get_jit_def(
    fn: Callable, def_name: str | None = None, self_name: str | None = None, is_classmethod: bool = False
) -> Def:
    """Return the tree of a Python function, named `def_name`, by default its own name; `self_name` is the class of its first
    parameter."""
    return definitions.get_jit_def(getattr(fn, "__func__", fn), def_name, self_name)


def get_jit_class_def(cls: type, self_name: str) -> ClassDef:
    """Return the tree of a class."""
    return definitions.get_jit_class_def(cls, self_name)


def build_def(
    ctx: OwnContext, py_def: ast.FunctionDef, type_line: str | None, def_name: str | None = None, self_name: str | None = None,
    pdt_arg_types: object = None,
) -> Def:  # fmt: skip
    """Return the tree of a function definition. `type_line` is a comment `# type: (int, Tensor) -> Tensor` with its types, or
    None."""
    where = ctx.word(py_def, "def")
    decl = Decl(where, build_param_list(ctx, py_def.args, self_name), build_optional(ctx, py_def.returns))
    if type_line is not None:
        decl = merge_type_from_type_comment(decl, parse_type_comment(type_line), self_name is not None)
    return Def(where, Ident(where, def_name or py_def.name), decl, build_stmts(ctx, py_def.body))


def build_param_list(
    ctx: OwnContext, py_args: ast.arguments, self_name: str | None = None, pdt_arg_types: object = None
) -> list[Param]:
    """Return the parameters of a function; `self_name` is the class of the first one, if that is called `self`."""
    first = next(iter([*py_args.posonlyargs, *py_args.args]), None)
    return definitions.build_params(ctx, py_args, self_name if first is not None and first.arg == "self" else None)


def build_stmts(ctx: OwnContext, stmts: Iterable[ast.stmt]) -> list[Tree]:
    """Return the trees of a block."""
    return build_statements(ctx, list(stmts))


def build_stmt(ctx: OwnContext, node: ast.stmt) -> Tree:
    """Return the tree of a statement."""
    return build_statements(ctx, [node])[0]


def build_expr(ctx: OwnContext, node: ast.expr) -> Tree:
    """Return the tree of an expression."""
    return build_expression(ctx, node)


def parse_type_comment(text: str) -> Decl:
    """Return the parameters, which have no names, and the return type of a comment `# type: (int, Tensor) -> Tensor`."""
    where = SourceRange(Source(text), 0, len(text))
    types, returned = definitions.parse_signature(text.strip().removeprefix("#").strip().removeprefix("type:").strip(), where)
    return Decl(where, [Param(where, each, Ident(where, ""), False) for each in types], returned)


def merge_type_from_type_comment(decl: Decl, type_annotation_decl: Decl, is_method: bool) -> Decl:
    """Return a declaration with the types of another one, which `parse_type_comment` made. The first parameter of a method may
    lack a type. NotSupportedError where the numbers of parameters differ."""
    types = [each.annotation for each in type_annotation_decl.params]
    params = definitions.merge_types(decl.range, decl.params, types, is_method)
    return Decl(decl.range, params, type_annotation_decl.return_type)


def get_type_line(source: str) -> str | None:
    """Return the comment with a function's types as one line, `# type: (int, Tensor) -> Tensor`; None where there is none.

    Comments on single parameters are combined; `# type: (...) -> Tensor` follows them then.
    """
    try:
        found = ast.parse(dedent(source), type_comments=True).body[0]
    except SyntaxError:  # a comment looks like a type comment, but stands where Python allows none
        return None
    if not isinstance(found, ast.FunctionDef) or found.type_comment is None:
        return None
    types = [each.type_comment for each in (*found.args.posonlyargs, *found.args.args, *found.args.kwonlyargs)]
    comment = found.type_comment.strip()
    if comment.startswith("(...)") and any(types):
        comment = f"({', '.join(each or 'Tensor' for each in types)}){comment.removeprefix('(...)')}"
    return f"# type: {comment}"
