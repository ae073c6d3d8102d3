"""Note 4, "init.py": `_compile_function` of PyTorch 1.2, as the note has it, over the frontend's and `torch._C`'s functions."""

import torch
from torch import _jit_internal
from torch._jit_internal import _qualified_name
from torch.jit.frontend import get_default_args, get_jit_def


def _compile_function(fn, qualified_name, _frames_up, _rcb=None):
    ast = get_jit_def(fn)
    if _rcb is None:
        closure_rcb = _jit_internal.createResolutionCallbackFromClosure(fn)
        stack_rcb = _jit_internal.createResolutionCallback(_frames_up + 1)

        def _rcb(name):
            # since type comments aren't captured in the function's closures,
            # we still need to try to the rcb based on stack frames if the
            # closure rcb fails
            result = closure_rcb(name)
            if result:
                return result
            return stack_rcb(name)
    script_fn = torch._C._jit_script_compile(qualified_name, ast, _rcb, get_default_args(fn))
    # Forward docstrings
    script_fn.__doc__ = fn.__doc__
    return script_fn


def scaled(x, factor=2.0):
    # type: (Tensor, float) -> Tensor
    """The input times a factor."""
    return torch.mul(x, factor)


compiled = _compile_function(fn=scaled, qualified_name=_qualified_name(scaled), _frames_up=0)
print(type(compiled).__name__, "|", compiled.__doc__)
print(compiled.schema)
print(compiled.graph)
print(compiled(torch.ones(2)), compiled(torch.ones(2), 3.0))
