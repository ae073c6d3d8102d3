"""Control flow on values inside of compiled functions: one graph, values and gradients of eager."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._higher_order_ops import associative_scan, cond, map, scan, while_loop
from tests.compiler.test_captured_transforms import Counting, leaves

BACKENDS = [None, "aot_eager", "inductor"]


@pytest.fixture(autouse=True)
def forget_afterwards():
    yield
    torch.compiler.reset()


torch.manual_seed(0)
X, W = torch.randn(6, 4), torch.randn(4)


def chosen(x, w):
    return cond(x.sum() > 0, lambda a: (a.sin() * w, {"k": a.sum()}), lambda a: (a - w, {"k": a.max()}), (x,))


def chosen_twice(x, w):
    inner = lambda a: cond(a.mean() > 0.5, lambda b: b * 2, lambda b: b + w, (a,))  # noqa: E731
    return cond(x.sum() > 0, inner, lambda a: a.cos(), (x * 3,)) + 1


def looped(x, w):
    return while_loop(lambda i, a: (i < 5) & (a.abs().max() < 50), lambda i, a: (i + 1, a * 2 + w), (torch.tensor(0), x))


def scanned(x, w):
    return scan(lambda c, v: (c * 0.5 + v, (c + w).tanh()), torch.zeros(4), x, reverse=True)


def joined(x, w):
    return associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x.sigmoid(), x + w), 0, combine_mode="generic")


def over_rows(x, w):
    return map(lambda v, k: (v * k, v.sum()), x, w)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [chosen, chosen_twice, looped, scanned, joined, over_rows])
def test_control_flow_is_part_of_the_graph(program, backend):
    counting = Counting(backend)
    compiled = torch.compile(program, backend=counting, fullgraph=True)
    for x in (X, -X, X.abs(), X / 100):
        for one, other in zip(leaves(compiled(x, W)), leaves(program(x, W)), strict=True):
            assert torch.allclose(one, other, atol=1e-5)
    assert counting.count == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [chosen, chosen_twice, scanned, joined])
def test_gradients(program, backend):
    compiled = torch.compile(program, backend=backend, fullgraph=True)
    for x in (X.abs(), -X.abs()):
        found = []
        for function in (compiled, program):
            inputs = [tensor.clone().requires_grad_() for tensor in (x, W)]
            sum(leaf.sin().sum() for leaf in leaves(function(*inputs))).backward()
            found.append([tensor.grad for tensor in inputs])
        for one, other in zip(*found, strict=True):
            assert torch.allclose(torch.zeros(1) if one is None else one, torch.zeros(1) if other is None else other, atol=1e-4)


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.one, lambda a: self.other(a).relu(), (x,))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_branches_of_modules_train(backend):
    net = Branching()
    compiled = torch.compile(net, backend=backend, fullgraph=True)
    for x in (X.abs(), -X.abs()):
        grads = []
        for function in (compiled, net):
            net.zero_grad()
            (function(x) ** 2).sum().backward()
            grads.append([torch.zeros(1) if p.grad is None else p.grad.clone() for p in net.parameters()])
        for one, other in zip(*grads, strict=True):
            assert torch.allclose(one, other * torch.ones_like(one), atol=1e-4)


@pytest.mark.parametrize(("program", "text"), [
    (lambda x: cond(x.sum() > 0, lambda a: a, lambda a: a.sum(), (x,)), "differ in size"),
    (lambda x: cond(x.sum() > 0, lambda a: a.add_(1), lambda a: a, (x,)), "writes"),
    (lambda x: while_loop(lambda a: a.sum() < 0, lambda a: (a.sum(),), (x,)), "differ in size"),
])  # fmt: skip
def test_what_cannot_be_captured_says_why(program, text):
    with pytest.raises(torch._dynamo.exc.Unsupported, match=text):
        torch.compile(program, backend="eager", fullgraph=True)(X)
