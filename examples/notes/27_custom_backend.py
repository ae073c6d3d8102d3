"""Note 5, "Custom Backend/Compiler Support": both backends of the note, which take the dropout out of a graph."""

import torch
import torch.nn as nn

class MyModule(nn.Module):
    def __init__(self):
        super().__init__()
        self._linear = nn.Linear(100, 3)
        self._dropout = nn.Dropout(p=0.3)
        
    def forward(self, x: torch.Tensor):
        out = self._linear(x)
        out = self._dropout(out)
        return out

my_model = MyModule()

ori_graph = torch.fx.symbolic_trace(my_model).graph
ori_graph.print_tabular()

new_graph = None

def my_backend(gm: torch.fx.GraphModule, sample_inputs: list[torch.Tensor]):
    global new_graph
    for node in gm.graph.nodes:
        if node.target == torch.nn.functional.dropout:
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    gm.recompile()
    new_graph = gm.graph
    return gm.forward

my_model_ = torch.compile(my_model, backend=my_backend)
x = torch.randn(10, 100, dtype=torch.float32)
print(torch.allclose(my_model_(x), my_model._linear(x)))

from copy import deepcopy
new_graph = None

def my_backend(gm: torch.fx.GraphModule, sample_inputs: list[torch.Tensor]):
    global new_graph
    new_graph = deepcopy(gm.graph)
    for node in new_graph.nodes:
        if node.target == torch.nn.functional.dropout:
            node.replace_all_uses_with(node.args[0])
            new_graph.erase_node(node)
    new_graph.lint()
    new_gm = torch.fx.GraphModule(root=gm, graph=new_graph)
    return new_gm.forward

my_model_ = torch.compile(my_model, backend=my_backend)
print(my_model_(x))
print(torch.allclose(my_model_(x), my_model._linear(x)))
new_graph.print_tabular()
