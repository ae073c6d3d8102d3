"""Note 1, "pytorch log level": `PYTORCH_JIT_LOG_LEVEL='>>dead_code_elimination'` shows what one pass does to each graph.

The variable is read by the program that compiles; this one sets it itself, so that it can be run as it is.
"""

import os

os.environ["PYTORCH_JIT_LOG_LEVEL"] = ">>dead_code_elimination"

import torch


@torch.jit.script
def aa(a, b):
    unused = a * 7
    c = a + b
    return c * c


aa(torch.ones(2), torch.ones(2))
print(aa.graph)
