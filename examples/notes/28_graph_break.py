"""Note 5, "What is GrapBreak?": symbolic_trace gives up at a branch on data; torch.compile makes a graph before and one behind."""

import torch
import torch.nn as nn
from torch.fx.proxy import TraceError

# an example with dynamic control flow
class DynamicModule(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.sum() > 0:
            return x*x
        return 3*x

try:
    _ = torch.fx.symbolic_trace(DynamicModule())
except TraceError:
    print("Tracing Error!!")

graphs = []

def collect_graphs(gm, samples):
    graphs.append(gm.graph)
    return gm.forward

model = torch.compile(DynamicModule(), backend=collect_graphs)
x = torch.randn(10)
_ = model(x)
_ = model(-x)

for graph in graphs:
    print(graph.python_code("self").src.strip())
    print("=="*10)
