"""Note 4, "踩坑": what the note warns of: typed lists and dicts, loops, `in`, `break`, attributes, constants, comments in UTF-8."""

from typing import Dict, List

import torch


@torch.jit.script
def loops(x: torch.Tensor, table: Dict[str, int]):
    collected = torch.jit.annotate(List[torch.Tensor], [])  # an empty list needs a type
    for i in range(10):
        if i == 3:
            break
        if i == 1:
            continue
        collected.append(x * i)
    total = 0
    for key in table.keys():
        if key in table:  # 中文注释 in a comment
            total += table[key]
    return torch.stack(collected), total


print(loops(torch.ones(2), {"a": 1, "b": 2}))


class Constants(torch.nn.Module):
    __constants__ = ["factor"]

    def __init__(self):
        super().__init__()
        self.factor = 3  # a constant of the graph
        self.names = torch.jit.Attribute({"x": 1}, Dict[str, int])  # an attribute, which is saved with the module

    def forward(self, x):
        return x * self.factor + self.names["x"]


module = torch.jit.script(Constants())
print(module(torch.ones(2)))
print(module.code)


def retyped(x):
    y = x
    if bool(x.sum() > 0):
        y = 3
    return y


try:
    torch.jit.script(retyped)  # a variable's type stays what it is
except RuntimeError as error:
    print(str(error).strip())
