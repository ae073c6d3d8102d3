"""Note 4, "debug": with PYTORCH_JIT=0 scripted and traced code is plain Python, in which a debugger can stop.

The variable is set here, so that the file can be run as it is.
"""

import os

os.environ["PYTORCH_JIT"] = "0"

import torch


@torch.jit.script
def foo(x):
    print("plain Python sees the type", type(x).__name__)
    return x + 1


print(type(foo).__name__, foo(torch.ones(2)).tolist())
