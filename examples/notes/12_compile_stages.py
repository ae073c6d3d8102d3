"""Note 3, "python source code", "lowering to", "IR", "after Interpreter.run_node()", "codegen": one sum through every stage.

The graph of torch's calls, the graph of aten operators as Python and as a list of nodes, the buffers with their loops, and the
C++ with the program around it.
"""

import torch
from torch._functorch.aot_autograd import aot_function
from torch._inductor.compile_fx import compile_fx_inner


def torch_graph(a, b):
    return a + b


x = torch.FloatTensor([1, 2, 3])
y = torch.FloatTensor([4, 5, 6])


def show_captured(gm: torch.fx.GraphModule, example_inputs):
    gm.print_readable()
    return gm.forward


assert torch.equal(torch.compile(torch_graph, backend=show_captured)(x, y), x + y)


def show_lowered(gm: torch.fx.GraphModule, example_inputs):
    gm.print_readable()
    print(gm.graph)
    torch._logging.set_logs(ir_pre_fusion=True, output_code=True)  # printed on the error stream
    return compile_fx_inner(gm, example_inputs)


print(aot_function(torch_graph, show_lowered)(x, y))
