"""RewritingTracer: a tracer that records the `assert` statements of the programs that it traces.

In: a module or function whose source can be read. Out: its graph, with a call of `torch._assert` for each assert of its forward
and of the modules that it calls.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from rushlight.fx.annotate import annotate
from rushlight.fx.graph import Graph
from rushlight.fx.targets import TORCH
from rushlight.fx.tracer import Tracer
from rushlight.nn.modules.module import Module

__all__ = ["AST_Rewriter", "RewritingTracer"]
_ASSERT, _ANNOTATE = "_recorded_assert", "_annotated"


class AST_Rewriter(ast.NodeTransformer):  # noqa: N801 - the name that torch users know
    """Replaces `assert` statements in functions by calls of `torch._assert(condition, message)`."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """Return the function with its asserts replaced, and with its globals, defaults and closure; OSError without source."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
        definition = self.visit(tree).body[0]
        definition.decorator_list = []
        # An outer function whose parameters are the function's free variables and the replacements of the functions that it
        # calls.
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        cells |= {_ASSERT: CellType(TORCH._assert), _ANNOTATE: CellType(annotate)}
        outer = ast.parse(f"def _outer({', '.join(cells)}):\n    pass").body[0]
        outer.body[0] = definition
        compiled = compile(ast.fix_missing_locations(ast.Module([outer], [])), inspect.getfile(fn), "exec")
        code = _code_named(fn.__name__, _code_named("_outer", compiled))
        closure = tuple(cells[name] for name in code.co_freevars)
        made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        made.__kwdefaults__, made.__annotations__ = fn.__kwdefaults__, fn.__annotations__
        return made

    def visit_Assert(self, node: ast.Assert) -> ast.AST:  # noqa: N802 - what ast calls
        """Rewrite `assert condition, message` as a call."""
        call = ast.Call(
            func=ast.Name(id=_ASSERT, ctx=ast.Load()),
            args=[node.test, node.msg if node.msg is not None else ast.Constant(value="")], keywords=[],
        )  # fmt: skip
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:  # noqa: N802
        """Rewrite `name: type = value` as a call that records the type on the value's node."""
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        call = ast.Call(func=ast.Name(id=_ANNOTATE, ctx=ast.Load()), args=[node.value, node.annotation], keywords=[])
        return ast.copy_location(ast.Assign(targets=[node.target], value=call), node)


class RewritingTracer(Tracer):
    """Traces programs and records their `assert` statements."""

    def trace(self, root: Module | Callable, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Trace like `Tracer.trace`."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(root: Module | Callable) -> Module | Callable:
    if not isinstance(root, Module):
        return AST_Rewriter().rewrite(root)
    made = _shallow(root)
    for name, child in root._modules.items():
        made._modules[name] = None if child is None else _rewrite(child)
    return made


def _shallow(module: Module) -> Module:
    """Return a module that shares the state of `module`; if its class is a user's, its forward has recorded asserts."""
    kind = type(module)
    if not kind.__module__.startswith(f"{__name__.partition('.')[0]}.") and isinstance(kind.forward, FunctionType):
        kind = type(kind.__name__, (kind,), {"forward": AST_Rewriter().rewrite(kind.forward), "__module__": kind.__module__})
    made = kind.__new__(kind)
    made.__dict__.update({**module.__dict__, "_modules": dict(module._modules)})
    return made


def _code_named(name: str, code: CodeType) -> CodeType:
    return next(constant for constant in code.co_consts if inspect.iscode(constant) and constant.co_name == name)
