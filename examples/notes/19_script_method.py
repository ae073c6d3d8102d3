"""Note 4, "script_method": methods marked in a ScriptModule's class are compiled after its `__init__` has run.

The note's class, with `f(self, x)` for the slip `f(self.x)`, and what `script_method` leaves in the class until then.
"""

import torch
from torch.jit.frontend import get_jit_def


class MyModule(torch.jit.ScriptModule):
    @torch.jit.script_method
    def f(self, x):
        return x * x
    @torch.jit.script_method
    def forward(self, x):
        return x + self.f(x)


module = MyModule()
print(module(torch.full((2,), 3.0)))
print(module.code)
print(module.graph)


def forward(self, x):
    return x + self.f(x)


print(get_jit_def(forward, self_name="ScriptModule"))  # the tree that a ScriptMethodStub holds: `self` has the module's type
