"""A lazy module is initialized when its call is captured, and then captured as the ordinary module that it became."""

from __future__ import annotations

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules.lazy import LazyModuleMixin


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.UninitializedParameter()

    def forward(self, values):
        return sum(value * self.scale for value in values)


class LazyScaled(LazyModuleMixin, Scaled):
    cls_to_become = Scaled

    def initialize_parameters(self, values):
        with torch.no_grad():
            self.scale.materialize(values[0].shape)
            self.scale.fill_(2)


def test_a_lazy_module_of_the_user():
    module, values = LazyScaled(), [torch.ones(3), torch.arange(3.0)]
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    assert compiled(values).tolist() == [2, 4, 6]
    assert type(module) is Scaled and module.scale.shape == (3,)
    assert compiled(values).tolist() == [2, 4, 6]


def test_lazy_layers_behind_other_calls_make_one_graph():
    graphs = []
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.LazyLinear(2))
    compiled = torch.compile(model, backend=lambda graph, inputs: graphs.append(graph) or graph, fullgraph=True)
    x = torch.ones(5, 4)
    assert torch.equal(compiled(x), model(x)) and torch.equal(compiled(x), model(x))
    assert type(model[2]) is nn.Linear and len(graphs) == 1
