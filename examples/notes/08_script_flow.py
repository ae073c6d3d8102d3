"""Note 2, "JIT & TorchScript": why tracing is not enough, scripting, both together, `fork` and `wait`, training a ScriptModule."""

import warnings

import torch


def branches(x):
    if x.sum() > 0:
        return x
    return -x


x = torch.ones(3)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the tracer says that it fixes the branch
    traced = torch.jit.trace(branches, x)
scripted = torch.jit.script(branches)
print("traced:", traced(-x).tolist(), "scripted:", scripted(-x).tolist(), "eager:", branches(-x).tolist())


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = torch.nn.Linear(3, 4)
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, count: int):
        y = self.layer1(x)
        if self.training:  # an attribute
            for _ in range(count):
                y = y * self.weight
        return y


model = torch.jit.script(Model())
print(model.code)
print([name for name, _ in model.named_parameters()], [name for name, _ in model.named_modules() if name])
model(x, 2).sum().backward()  # a ScriptModule is an nn.Module: it can be trained
print("gradient:", model.weight.grad.shape)


@torch.jit.script
def mixed(x):  # a scripted function may call a traced one
    return traced(x) + 1


print("script over trace:", mixed(x).tolist())


@torch.jit.script
def parallel(x):
    future = torch.jit._fork(branches, -x)
    return torch.jit._wait(future) + x


print("fork and wait:", parallel(x).tolist())
print(parallel.graph)
