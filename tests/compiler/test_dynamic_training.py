"""Compiled training with open sizes: one joint graph serves a range of sizes, and its gradients are eager's."""

from __future__ import annotations

import copy

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler.backends import make_backend
from rushlight.compiler.logs import StageLog
from rushlight.compiler.settings import from_environment
from rushlight.nn import functional as F
from tests.compiler.test_training import run, same

BACKENDS = ["aot_eager", "inductor"]
SIZES = (4, 6, 3, 9, 5)


@pytest.fixture(params=BACKENDS)
def counting(request):
    """A backend that counts its calls."""
    settings = from_environment()
    inner = make_backend(request.param, settings, {}, StageLog(settings, "counted"))

    def backend(module, inputs):
        backend.calls += 1
        return inner(module, inputs)

    backend.calls = 0
    return backend


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 4, 3, stride=2)
        self.last = nn.Linear(36, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        return self.last(self.second(x).flatten(1))


class Block(nn.Module):
    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.together, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.together(self.norms[0](x)).view(batch, tokens, 3, self.heads, width // self.heads)
        attended = F.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4).unbind(0), is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.narrow(F.gelu(self.wide(self.norms[1](x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(16, 16)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(16, 20)

    def forward(self, words):
        return self.head(self.blocks(self.words(words) + self.places(torch.arange(words.shape[1])))).transpose(1, 2)


def perceptron():
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 5))


MODELS = {
    "perceptron": (perceptron, lambda n: (torch.randn(n, 12), torch.randint(0, 5, (n,)))),
    "convolutions": (Convolutions, lambda n: (torch.randn(n, 3, 16, 16), torch.randint(0, 5, (n,)))),
    "transformer": (Transformer, lambda n: (torch.randint(0, 20, (n, 7)), torch.randint(0, 20, (n, 7)))),
    "transformer, two sizes": (Transformer, lambda n: (torch.randint(0, 20, (n, n + 1)), torch.randint(0, 20, (n, n + 1)))),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_second_size_compiles_again_and_a_third_does_not(name, counting):
    make, data = MODELS[name]
    torch.manual_seed(0)
    model = make()
    other = copy.deepcopy(model)
    fast = torch.compile(lambda x, y: F.cross_entropy(model(x), y), backend=counting, fullgraph=True)
    calls = []
    for size in SIZES:
        x, y = data(size)
        model.zero_grad()
        other.zero_grad()
        ours, theirs = fast(x, y), F.cross_entropy(other(x), y)
        ours.backward()
        theirs.backward()
        same(ours, theirs, 1e-4)
        same([value.grad for value in model.parameters()], [value.grad for value in other.parameters()], 1e-4)
        calls.append(counting.calls)
    assert calls == [1, 2, 2, 2, 2]
    for mine, theirs in zip(model.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def outcome(function, *inputs):
    torch.manual_seed(1)
    return run(function, inputs)


def serves(function, counting, make_inputs, **options):
    """Check that one capture with all sizes open serves all sizes."""
    fast = torch.compile(function, backend=counting, fullgraph=True, dynamic=True, **options)
    for size in SIZES:
        inputs = make_inputs(size)
        for ours, theirs in zip(outcome(fast, *inputs), outcome(function, *inputs), strict=True):
            same(ours, theirs)
    assert counting.calls == 1


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape).requires_grad_()


def strided(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2 * size, 7).t()[:, ::2].requires_grad_(), leaf(7, size)


PROGRAMS = {
    "reductions": (lambda a: (a.mean(0) + a.std(0)).sum() * a.softmax(1), lambda n: (leaf(n, 7),)),
    "products": (lambda a, b: (a @ b.t()).exp().sum(1), lambda n: (leaf(n, 7), leaf(n + 8, 7))),
    "views": (lambda a: (a.t(), a[1:] * 2, (a * 3).t(), a.view(-1)[: a.shape[0]]), lambda n: (leaf(n, 7),)),
    "views of each other": (lambda a: ((b := a.sin())[0], b.t(), b), lambda n: (leaf(n, 7),)),
    "sizes": (lambda a: (a * a.shape[0], a.shape[0] * 2, a.shape[0]), lambda n: (leaf(n, 7),)),
    "windows": (lambda a: F.avg_pool1d(a[None], 2, 2).cos() / a.numel(), lambda n: (leaf(3, 2 * n + 1),)),
    "parts": (lambda a: torch.cat([a[: a.shape[0] - 1].exp(), a], 0).cumsum(0), lambda n: (leaf(n, 7),)),
    "strides": (lambda a, b: (a * b).tanh() + a, strided),
    "numbers": (lambda a, b: F.pad(a, (0, b.shape[0])) * b.numel(), lambda n: (leaf(n, 7), torch.randn(n + 8, 3))),
    "writes": (lambda a, b: b.mul_(2).add_(a.detach()) * a, lambda n: (leaf(n, 7), torch.randn(n, 7))),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_joint_graph_serves_all_sizes(name, counting):
    function, make_inputs = PROGRAMS[name]
    serves(function, counting, make_inputs)


@pytest.mark.parametrize("options", [{"memory_budget": 0.0}, {"partitioner": "default"}], ids=["budget 0", "default"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_open_sizes_with_other_partitions(options, backend):
    def function(a):
        return (a @ a.t()).softmax(0).sin().sum() / a.shape[0]

    fast = torch.compile(function, backend=backend, fullgraph=True, dynamic=True, options={**options, "recompile_limit": 1})
    for size in SIZES:
        a = leaf(size, 7)
        for ours, theirs in zip(outcome(fast, a), outcome(function, a), strict=True):
            same(ours, theirs)


def test_a_marked_size_is_open_at_once(counting):
    fast = torch.compile(lambda a, b: (a * b).exp().sum(0), backend=counting, fullgraph=True)

    def marked(a, b):
        torch.compiler.mark_dynamic(a, 0)
        return fast(a, b)

    for size in SIZES:
        a, b = leaf(size, 7), leaf(7)
        for ours, theirs in zip(outcome(marked, a, b), outcome(lambda a, b: (a * b).exp().sum(0), a, b), strict=True):
            same(ours, theirs)
    assert counting.calls == 1


def test_gradients_of_other_strides_and_second_derivatives(counting):
    fast = torch.compile(lambda a: a.sin() * a, backend=counting, fullgraph=True, dynamic=True)
    for size in SIZES:
        a = leaf(size, 3)
        (first,) = torch.autograd.grad(fast(a), a, torch.ones(3, size).t())
        torch.testing.assert_close(first, (a.cos() * a + a.sin()).detach())
        (first,) = torch.autograd.grad(fast(a), a, torch.ones(size, 3), create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), a)
        torch.testing.assert_close(second, (2 * a.cos() - a.sin() * a).detach())
    assert counting.calls == 1


def test_an_int_that_changes_is_an_input_of_the_joint_graph(counting):
    fast = torch.compile(lambda a, n: F.pad(a, (0, n)).sin() * n, backend=counting, fullgraph=True)
    calls = []
    for number in (3, 5, 7, 8):
        a = leaf(4)
        (found,) = torch.autograd.grad(fast(a, number).sum(), a)
        torch.testing.assert_close(found, (number * a.cos()).detach())
        calls.append(counting.calls)
    assert calls == [1, 2, 2, 2]


def test_a_size_that_a_derivative_reads_as_well_is_one_input_of_the_backward(counting):
    def loss(x):
        return F.cross_entropy(x, torch.arange(x.shape[0]) % 3, label_smoothing=0.1)

    compiled = torch.compile(loss, backend=counting, dynamic=True, fullgraph=True)
    for shape in ((8, 12), (8, 7), (5, 9)):
        x = torch.randn(shape)
        x, y = x.clone().requires_grad_(), x.requires_grad_()
        expected, found = loss(x), compiled(y)
        (expected * 2).backward()
        (found * 2).backward()
        assert found.dtype is expected.dtype and torch.allclose(found, expected) and torch.allclose(x.grad, y.grad)
    assert counting.calls == 1


@pytest.mark.parametrize("pooled", [(3, 3), (1, 5), (40, 2)])
def test_adaptive_pools_of_images_of_many_sizes(pooled, counting):
    pool = nn.AdaptiveAvgPool2d(pooled)
    compiled = torch.compile(pool, backend=counting, dynamic=True, fullgraph=True)
    for height, width in ((61, 66), (181, 126), (301, 186)):  # of the same remainders
        x = torch.randn(2, 3, height, width)
        x, y = x.clone().requires_grad_(), x.requires_grad_()
        expected, found = pool(x), compiled(y)
        expected.pow(2).sum().backward()
        found.pow(2).sum().backward()
        assert torch.allclose(found, expected, atol=1e-5) and torch.allclose(x.grad, y.grad, atol=1e-5)
    assert counting.calls == 1
