"""Note 1, "Pytorch Jit trace": a function becomes a ScriptFunction, whose graph is optimized and run as instructions."""

import torch


def foo(x, y):
    return torch.tanh(x) + y * 2


x, y = torch.rand(3), torch.rand(3)
traced_foo = torch.jit.trace(foo, (x, y))  # runs foo once, and records the operators that it calls
print(type(traced_foo).__name__)
print(traced_foo.graph)

assert torch.equal(traced_foo(x, y), foo(x, y))
plan = next(iter(traced_foo.get_debug_state().execution_plans.values()))
print(plan.graph)  # what the executor made of the graph (getPlanFor)
print(plan.code)  # the instructions that the interpreter's loop goes through (runImpl)
