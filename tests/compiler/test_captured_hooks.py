"""Hooks of tensors and modules on gradients are part of the captured graph where they only compute."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import nn
from tests.compiler.test_captured_functions import Square, backend, checked, eagers_random_numbers  # noqa: F401
from tests.compiler.test_training import compiled, leaf, run, same

pytestmark = pytest.mark.filterwarnings("error:compile")


def hooked(hook, through=lambda a, b: a * b):
    def function(a, b):
        c = through(a, b)
        c.register_hook(lambda grad: hook(grad, b))
        return c.sin() + a

    return function


HOOKS = {
    "another gradient": hooked(lambda grad, b: grad * 2),
    "the same gradient": hooked(lambda grad, b: None),
    "a limit": hooked(lambda grad, b: grad.clamp(-0.1, 0.1)),
    "a value of the program": hooked(lambda grad, b: grad * b + b.detach().sum()),
    "of a view": hooked(lambda grad, b: grad * 3, lambda a, b: (a * b).t()[1:].t()[:, :].repeat(1, 6)[:, :6]),
    "of a Function": hooked(lambda grad, b: grad * 3, lambda a, b: Square.apply(a * b)),
}


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_of_tensors(name, backend):  # noqa: F811
    torch.manual_seed(2)
    checked(HOOKS[name], leaf(4, 6), leaf(4, 6), backend=backend)


def test_several_hooks_before_and_after_a_write(backend):  # noqa: F811
    def function(a):
        b = a * 4
        b.register_hook(lambda grad: grad * 2)
        b.register_hook(lambda grad: grad + 1)
        b.mul_(3)
        b.register_hook(lambda grad: grad * 5)
        return b * a

    checked(function, leaf(5), backend=backend)


def test_a_hook_that_keeps_gradients_ends_the_graph():
    def function(a, kept):
        b = a * 2
        b.register_hook(kept.append)
        return (b * 3).sum()

    for program in (function, torch.compile(function, backend="aot_eager")):
        a, kept = leaf(3), []
        program(a, kept).backward()
        same(kept, [torch.full((3,), 3.0)])
    reason = torch._dynamo.explain(function)(leaf(3), []).break_reasons[0].reason
    assert "a hook on a tensor, cannot be captured: a change of" in reason


def test_a_handle_that_is_used_ends_the_graph():
    def function(a):
        b = a * 2
        handle = b.register_hook(lambda grad: grad * 5)
        c = b * 3
        handle.remove()
        return c.sum()

    for program in (function, torch.compile(function, backend="aot_eager")):
        a = leaf(3)
        program(a).backward()
        same(a.grad, torch.full((3,), 6.0))


def test_a_hook_of_a_tensor_from_outside(backend):  # noqa: F811
    def function(a):
        a.register_hook(lambda grad: grad * 5)
        return (a * 3).sum()

    a = leaf(3)
    torch.compile(function, backend=backend)(a).backward()
    same(a.grad, torch.full((3,), 15.0))


class TwoWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, a, b, factor=2.0):
        return self.linear(a) * factor, b * a


def after(module, grad_input, grad_output):
    return tuple(None if grad is None else grad * 2 + grad_output[0].mean() for grad in grad_input)


def before(module, grad_output):
    return tuple(None if grad is None else grad * 3 for grad in grad_output)


def only_looks(module, grad_input, grad_output):
    return None


def by_weight(module, grad_input, grad_output):
    return (grad_input[0] * module.linear.weight.detach().sum(), *grad_input[1:])


REGISTERED = {
    "after": lambda m: m.register_full_backward_hook(after),
    "before": lambda m: m.register_full_backward_pre_hook(before),
    "both": lambda m: (m.register_full_backward_hook(after), m.register_full_backward_pre_hook(before)),
    "several": lambda m: (m.register_full_backward_hook(after), m.register_full_backward_hook(only_looks)),
    "reads the module": lambda m: m.register_full_backward_hook(by_weight),
    "nested": lambda m: (m.register_full_backward_hook(after), m.linear.register_full_backward_hook(after)),
}


@pytest.mark.parametrize("inputs", ["both", "first", "values"])
@pytest.mark.parametrize("name", REGISTERED)
def test_backward_hooks_of_modules(name, inputs, backend):  # noqa: F811
    torch.manual_seed(4)
    module = TwoWays()
    REGISTERED[name](module)

    def function(a, b):
        if inputs == "first":
            b = b.detach()
        if inputs == "values":
            a, b = a.exp(), b * a
        one, other = module(a, b, 3.0)
        return one.tanh() + other

    found = []
    for program in (function, compiled(function, backend)):
        module.zero_grad()
        torch.manual_seed(6)
        found.append((run(program, [leaf(4, 6), leaf(4, 6)]), [p.grad.clone() for p in module.parameters()]))
    same(found[1], found[0])


def test_a_module_whose_inputs_have_no_gradient(backend):  # noqa: F811
    module, a = nn.Linear(6, 2), torch.randn(4, 6)
    module.register_full_backward_hook(only_looks)
    module.register_full_backward_pre_hook(before)
    found = []
    for program in (module, compiled(lambda a: module(a), backend)):
        module.zero_grad()
        program(a).sum().backward()
        found.append([parameter.grad.clone() for parameter in module.parameters()])
    same(found[1], found[0])


def test_hooks_of_modules_that_do_more_than_compute():
    module, seen = nn.Linear(3, 3), []
    module.register_full_backward_hook(lambda module, given, arrived: seen.append((*given, *arrived)))
    function = lambda a: module(a.exp()).sum()  # noqa: E731
    a = leaf(2, 3)
    function(a).backward()
    torch.compile(function, backend="aot_eager")(a).backward()
    same(seen[1], seen[0])
    reasons = [str(reason) for reason in torch._dynamo.explain(function)(a).break_reasons]
    assert "the backward hooks of Linear cannot be captured: a change of" in reasons[0]


def test_a_step_of_training(backend):  # noqa: F811
    """Forward, backward and the optimizer's step: one graph before `backward`."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 1)
            self.first.register_full_backward_hook(after)

        def forward(self, a):
            b = Square.apply(self.first(a))
            b.register_hook(lambda grad: grad.clamp(-1, 1))
            return self.last(b)

    torch.manual_seed(1)
    first, second = Model(), Model()
    second.load_state_dict(first.state_dict())
    batches = [torch.randn(5, 6) for _ in range(4)]

    def step(model, optimizer, batch):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    losses = []
    for model, program in ((first, step), (second, torch.compile(step, backend=backend))):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        losses.append([program(model, optimizer, batch) for batch in batches])
    same(losses[1], losses[0])
    same(list(second.state_dict().values()), list(first.state_dict().values()))
    explained = torch._dynamo.explain(step)(first, torch.optim.SGD(first.parameters(), lr=0.05), batches[0])
    assert "backward" in explained.break_reasons[0].reason
    assert "Square" in [node.target.__name__ for node in explained.graphs[0].graph.nodes if hasattr(node.target, "__name__")]


FIRST_MAP = """
import rushlight as torch

compiled = torch.compile(lambda a: a * 2, backend="eager")
compiled(torch.ones(3))  # dynamo's handlers know the methods of Tensor from here on
assert torch.vmap(lambda x: x * 2)(torch.ones(3)).tolist() == [2.0] * 3

def hooked(a):
    b = a * 3
    b.register_hook(lambda grad: grad * 5)
    return b.sum()

a = torch.ones(3, requires_grad=True)
torch.compile(hooked, backend="eager", fullgraph=True)(a).backward()
print(a.grad.tolist())
"""


def test_hooks_after_the_first_map_of_a_process():
    ran = subprocess.run([sys.executable, "-c", FIRST_MAP], capture_output=True, text=True)
    assert ran.stdout == "[15.0, 15.0, 15.0]\n", ran.stderr
