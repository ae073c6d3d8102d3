"""Note 4, "frontend.py": `get_jit_def` and `build_def` of PyTorch 1.2, as the note has them, over the functions that they call."""

import ast
import inspect
from textwrap import dedent

import torch
from torch._C._jit_tree_views import *
from torch.jit.frontend import SourceContext, build_expr, build_param_list, build_stmts


def _uses_true_division(fn):
    return True  # Python 3


def get_jit_def(fn, self_name=None):
    sourcelines, file_lineno = inspect.getsourcelines(fn)  # 得到fn里面的live objs 
    source = ''.join(sourcelines)
    filename = inspect.getsourcefile(fn)
    dedent_src = dedent(source)
    py_ast = ast.parse(dedent_src)
    if len(py_ast.body) != 1 or not isinstance(py_ast.body[0], ast.FunctionDef):
        raise RuntimeError("expected a single top-level function")
    leading_whitespace_len = len(source.split('\n', 1)[0]) - len(dedent_src.split('\n', 1)[0])
    type_line = torch.jit.annotations.get_type_line(source)  # 读type，不写的话默认torch.Tensor
    ctx = SourceContext(source, filename, file_lineno, leading_whitespace_len, _uses_true_division(fn))
    return build_def(ctx, py_ast.body[0], type_line, self_name)


def build_def(ctx, py_def, type_line, self_name=None):
    body = py_def.body
    r = ctx.make_range(py_def.lineno, py_def.col_offset,
                       py_def.col_offset + len("def"))
    param_list = build_param_list(ctx, py_def.args, self_name)
    return_type = None
    if getattr(py_def, 'returns', None) is not None:
        return_type = build_expr(ctx, py_def.returns)
    decl = Decl(r, param_list, return_type)
    is_method = self_name is not None
    if type_line is not None:
        type_comment_decl = torch._C.parse_type_comment(type_line)
        decl = torch._C.merge_type_from_type_comment(decl, type_comment_decl, is_method)
    return Def(Ident(r, py_def.name),
               decl,
               build_stmts(ctx, body))


class Holder:
    def scaled(self, x, factor):
        # type: (Tensor, float) -> Tensor
        return x * factor


print(get_jit_def(Holder.scaled, self_name="Holder"))


def plain(x, count: int) -> torch.Tensor:
    while count > 0:
        x = x + 1
        count -= 1
    return x


tree = get_jit_def(plain)
print(tree)
print(torch._C._jit_script_compile("plain", tree, globals().get, {})(torch.zeros(2), 3))
