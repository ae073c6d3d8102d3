"""The frontend under PyTorch's names: trees by its constructors, contexts, type comments, resolution callbacks."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap

import pytest

import rushlight as torch
from rushlight import _jit_internal
from rushlight.jit.errors import NotSupportedError


def scaled(x, factor=2.0, count: int = 1):
    # type: (Tensor, float, int) -> Tensor
    y = -x if count > 0 else x[1:]
    return torch.mul(y, factor)


def context_of(library, function):
    lines, first = inspect.getsourcelines(function)
    text = "".join(lines)
    return importlib.import_module(f"{library.__name__}._sources").SourceContext(text, __file__, first, len(text) - len(text.lstrip())), ast.parse(textwrap.dedent(text)).body[0]


def trees(library):
    """The trees of a function by both ways, and of nodes made one by one."""
    frontend, views = library.jit.frontend, library._C._jit_tree_views
    context, node = context_of(library, scaled)
    where = context.make_range(1, 0, 3)
    name = views.Ident(where, "n")
    variable = views.Var(name)
    pieces = [
        frontend.get_jit_def(scaled, "scaled"),
        frontend.build_def(context, node, None, "scaled"),
        frontend.build_def(context, node, "# type: (Tensor, float, int) -> Tensor", "scaled", None),
        *frontend.build_stmts(context, node.body),
        frontend.build_expr(context, node.body[1].value),
        *frontend.build_param_list(context, node.args, "Kind"),
        views.Assign([variable], views.Const(where, "1"), variable),
        views.AugAssign(variable, "+", variable), views.ExprStmt(variable), views.Return(where, variable),
        views.BinOp("+", variable, variable), views.UnaryOp(where, "-", variable), views.TernaryIf(variable, variable, variable),
        views.Apply(views.Select(variable, name), [variable], [views.Attribute(name, variable)]),
        views.Subscript(variable, [views.SliceExpr(where, variable, None, None)]),
        views.ListLiteral(where, [variable]), views.TupleLiteral(where, [variable]), views.DictLiteral(where, [variable], [variable]),
        views.If(where, variable, [views.Pass(where)], [views.Break(where)]), views.While(where, variable, [views.Continue(where)]),
        views.For(where, [variable], [variable], [views.Delete(where, [variable])]), views.Raise(where, variable),
        views.StringLiteral(where, "text"), views.TrueLiteral(where), views.NoneLiteral(where), views.Dots(where),
        views.Param(variable, name, True),
        library._C.parse_type_comment("# type: (int, List[Tensor]) -> Tuple[int, Tensor]"),
    ]  # fmt: skip
    return [str(piece) for piece in pieces]


def test_nodes_are_those_of_the_frontend():
    views = torch._C._jit_tree_views
    definition = torch.jit.frontend.get_jit_def(scaled)
    assert isinstance(definition, views.Def) and isinstance(definition, views.TreeView)
    assert isinstance(definition.body[0], views.Stmt) and not isinstance(definition.body[0], views.Expr)
    assert issubclass(views.Var, views.Expr)
    with pytest.raises(TypeError, match="Expr is a kind of tree"):
        views.Expr()


@pytest.mark.oracle
def test_trees_are_those_of_torch():
    oracle = pytest.importorskip("torch")
    assert trees(torch) == trees(oracle)


def test_positions_in_indented_source():
    class Holder:
        def method(self, x):
            return self.undefined_thing(x)

    context, node = context_of(torch, Holder.method)
    tree = torch.jit.frontend.build_def(context, node, None, "method", "Holder")
    assert tree.body[0].range.text == "return self.undefined_thing(x)"
    line = Holder.method.__code__.co_firstlineno + 1
    assert f'test_pytorch_names.py", line {line}' in tree.body[0].range.highlight()


def test_type_comments():
    frontend, c = torch.jit.frontend, torch._C
    declared = frontend.get_jit_def(lambda_free).decl
    with pytest.raises(NotSupportedError, match=r"annotations \(1\) did not match the number of function parameters \(2\)"):
        c.merge_type_from_type_comment(declared, c.parse_type_comment("# type: (int) -> int"), False)
    with pytest.raises(NotSupportedError, match="is not of the form"):
        c.parse_type_comment("# type: int")
    get_type_line = torch.jit.annotations.get_type_line
    assert get_type_line("def f(x):\n    # type: (int) -> int\n    return x") == "# type: (int) -> int"
    assert get_type_line("def f(x,  # type: int\n      y):\n    # type: (...) -> int\n    return x") == "# type: (int, Tensor) -> int"
    assert get_type_line("def f(x):\n    y = []  # type: List[int]\n    return x") is None


def lambda_free(a, b):
    return a


def test_compiling_a_tree():
    compiled = torch._C._jit_script_compile(
        "scaled", torch.jit.frontend.get_jit_def(scaled), _jit_internal.createResolutionCallbackFromClosure(scaled),
        torch.jit.frontend.get_default_args(scaled),
    )  # fmt: skip
    assert compiled(torch.ones(2)).tolist() == [-2, -2] and compiled(torch.ones(2), 3.0, count=0).tolist() == [3]
    with pytest.raises(RuntimeError, match="undefined value torch"):
        torch._C._jit_script_compile("scaled", torch.jit.frontend.get_jit_def(scaled), lambda name: None, {})


def test_resolution_callbacks():
    found = "of the frame"
    from_frame = _jit_internal.createResolutionCallbackFromFrame()
    assert from_frame("found") is found and from_frame("torch") is torch and from_frame("len") is len
    assert from_frame("torch.nn.Linear") is torch.nn.Linear and from_frame("nothing_of_this_name") is None
    assert _jit_internal.createResolutionCallbackFromClosure(lambda: found)("found") is found
    assert _jit_internal.createResolutionCallbackFromEnv(torch)("nn.Linear") is torch.nn.Linear
    with pytest.raises(ValueError, match="there are no 100000 calls"):
        _jit_internal.createResolutionCallback(100000)

    class Kind:
        def method(self):
            return found

    assert _jit_internal.createResolutionCallbackForClassMethods(Kind)("found") is found
