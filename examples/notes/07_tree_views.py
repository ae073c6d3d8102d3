"""Note 2, "script flow": the tree of a function with a loop and a branch, built piece by piece as `build_def` does it."""

import ast
import inspect

import torch
from torch._C._jit_tree_views import Decl, Def, For, Ident, If, Return
from torch.jit.frontend import SourceContext, build_expr, build_param_list, build_stmts


def foo(len: int) -> torch.Tensor:
    rv = torch.zeros(3, 4)
    for i in range(len):
        if i < 10:
            rv = rv - 1.0
        else:
            rv = rv + 1.0
    return rv


source = inspect.getsource(foo)
definition = ast.parse(source).body[0]
ctx = SourceContext(source, __file__, foo.__code__.co_firstlineno, 0)
r = ctx.make_range(definition.lineno, definition.col_offset, definition.col_offset + len("def"))
decl = Decl(r, build_param_list(ctx, definition.args, None), build_expr(ctx, definition.returns))
body = build_stmts(ctx, definition.body)
tree = Def(Ident(r, definition.name), decl, body)
print(tree)

print([type(each).__name__ for each in body], isinstance(body[1], For), isinstance(body[1].body[0], If), isinstance(body[2], Return))
print(r.highlight())

compiled = torch._C._jit_script_compile("foo", tree, globals().get, {})
print(compiled.graph)
assert torch.equal(compiled(12), foo(12))
