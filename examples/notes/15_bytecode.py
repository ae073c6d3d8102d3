"""Note 3, "modify the python bytecode": the instructions that run in a function's place: load the graph, its inputs, call it."""

import dis

import torch
from torch._dynamo.eval_frame import _debug_get_cache_entry_list, innermost_fn


def torch_graph(a, b):
    return a + b


compiled = torch.compile(torch_graph)
compiled(torch.ones(3), torch.ones(3))  # nothing was compiled before this first call
entry = _debug_get_cache_entry_list(innermost_fn(compiled))[0]
for instruction in dis.Bytecode(entry.code):
    print(instruction)
dis.dis(entry.code)
