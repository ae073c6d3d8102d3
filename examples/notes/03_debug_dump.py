"""Note 1, "debug trick": where the note has gdb call `dump()` on a stack's values and on a graph, Python prints them."""

import torch


@torch.jit.script
def aa(a, b):
    c = a + b
    d = c * c
    return d


print(aa.graph)  # graph->dump()
for node in aa.graph.nodes():
    print(node.kind(), [value.debugName() for value in node.inputs()], "->", [value.debugName() for value in node.outputs()])
print(aa(torch.ones(2), torch.ones(2)))  # what lies on the stack at the end
