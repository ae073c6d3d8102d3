"""Note 3, "Pytorch Eager Mode": the way of `neg` through the dispatcher: overload, keys, kernel, registering a kernel."""

import torch
from torch.ops.modes import DispatchMode  # Rushlight's; TorchDispatchMode in PyTorch

x = torch.tensor([1.0, -2.0])
op = torch.ops.aten.neg.default
print(op, "|", op._schema)


class Show(DispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print("dispatched:", func, [tuple(arg.shape) for arg in args])
        return func(*args, **(kwargs or {}))


with Show():
    print(-x)

library = torch.library.Library("notes", "DEF")
library.define("neg(Tensor self) -> Tensor")  # a schema, and a kernel for one key, as RegisterOperators does it
library.impl("neg", lambda self: self * -1.0, "CPU")
print(torch.ops.notes.neg(x), torch.ops.notes.neg.default._schema)
