"""Builtins with keywords, dicts of two parts, `...` by name, traversals of modules, futures as annotations, type comments."""

from typing import Dict, List, Tuple

import rushlight as torch
from rushlight import Tensor, nn


def dict_of_pairs():
    return dict([("x", 1)], y=2)
#: ()


def dict_with_a_key_twice():
    return dict([("x", 1), ("y", 5)], y=2, z=3)
#: ()


def dict_of_a_dict(a: Dict[str, int]):
    return dict(a, y=2)
#: ({"a": 1, "y": 3},)


def dict_of_a_literal():
    return dict({"x": 1}, y=2)
#: ()


def dict_of_an_empty_list():
    return dict([], y=2)
#: ()


def dict_of_keys():
    return dict(x=1, y=2)
#: ()


def input_by_name(x: Tensor):
    return torch.ceil(input=x), torch.add(input=x, other=x), torch.relu(input=x), torch.sum(input=x, dim=0)
#: (torch.tensor([1.5, -2.0]),)


def more_inputs_by_name(x: Tensor):
    return torch.softmax(input=x, dim=0), torch.matmul(input=x, other=x), torch.clamp(input=x, min=0.0), torch.mean(input=x)
#: (torch.tensor([1.5, -2.0]),)


def shapes_by_name(x: Tensor):
    return torch.reshape(input=x, shape=[1, 2]), torch.unsqueeze(input=x, dim=0), torch.cat(tensors=[x, x])
#: (torch.tensor([1.5, -2.0]),)


def ellipsis_by_name(x: Tensor):
    y = x.clone()
    y[Ellipsis, 0] = 5.0
    return x[Ellipsis, 0], y
#: (torch.tensor([[1.5, -2.0]]),)


def added(x: Tensor):
    return x + 1


def future_annotated(x: Tensor):
    f: torch.jit.Future[Tensor] = torch.jit.fork(added, x)
    return torch.jit.wait(f)
#: (torch.tensor([1.5, -2.0]),)


def futures_listed(x: Tensor):
    found: List[torch.jit.Future[Tensor]] = []
    found.append(torch.jit.fork(added, x))
    return torch.jit.wait(found[0])
#: (torch.tensor([1.5, -2.0]),)


def future_returned(x: Tensor) -> torch.jit.Future[Tensor]:
    return torch.jit.fork(added, x)


def waits_for_returned(x: Tensor):
    return torch.jit.wait(future_returned(x))
#: (torch.tensor([1.5, -2.0]),)


def typed_without_arrow(a, b):
    # type: (int, Tensor)
    return b + a
#: (1, torch.tensor([1.5, -2.0]))


class Traversed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(2))
        self.register_buffer("b", torch.zeros(1))
        self.layer = nn.BatchNorm1d(2)
        self.layers = nn.ModuleList([nn.ReLU(), nn.Sequential(nn.Tanh(), nn.ReLU())])


class Buffers(Traversed):
    def forward(self, x: Tensor):
        names: List[str] = []
        for name, buffer in self.named_buffers():
            x = x + buffer.sum()
            names.append(name)
        return x, names
#: (torch.ones(2),)


class BuffersBelow(Traversed):
    def forward(self, x: Tensor):
        for name, buffer in self.layer.named_buffers():
            x = x + buffer.sum()
        return x
#: (torch.ones(2),)


class Children(Traversed):
    def forward(self, x: Tensor):
        names: List[str] = []
        for name, child in self.named_children():
            names.append(name)
        return names
#: (torch.ones(2),)


class Modules(Traversed):
    def forward(self, x: Tensor):
        names: List[str] = []
        for name, child in self.named_modules():
            names.append(name)
        return names
#: (torch.ones(2),)


class Counted(Traversed):
    def forward(self, x: Tensor):
        count = 0
        for child in self.modules():
            count += 1
        for child in self.children():
            count += 1
        return count
#: (torch.ones(2),)
