"""Note 1, "pytorch script": the tree after `build_def`, as the note prints it, and the function that is compiled from it."""

import torch
from torch._jit_internal import _qualified_name, createResolutionCallbackFromClosure
from torch.jit.frontend import get_default_args, get_jit_def


def f(a, b):
    c = a + b
    d = c * c
    e = torch.tanh(d * c)
    return d + (e + e)


tree = get_jit_def(f, f.__name__)
print(tree)

compiled = torch._C._jit_script_compile(_qualified_name(f), tree, createResolutionCallbackFromClosure(f), get_default_args(f))
print(compiled.graph)
a, b = torch.rand(3), torch.rand(3)
assert torch.allclose(compiled(a, b), f(a, b))
