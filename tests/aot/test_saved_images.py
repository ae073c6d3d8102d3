"""Images kept for the backward channels-last: gradients are eager's, in eager's order of memory, whatever runs the graphs."""

from __future__ import annotations

import re

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


class Block(nn.Module):
    def __init__(self, channels: int, groups: int = 1):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, 2 * channels, 1, stride=2)

    def forward(self, x):
        return self.second(F.gelu(self.norm(self.first(x))) + x)


def pooled(model, x):
    return F.max_pool2d(model(x), 2).flatten(1).square().mean()


def with_views(model, x):
    """The image is kept, and the backward looks at it through a view that channels-last memory has not."""
    y = model.first(x.contiguous()).exp()
    return (y.view(x.shape[0], -1) * torch.sin(y.view(x.shape[0], -1))).sum()


def returned(model, x):
    y = model.first(x)
    return y, F.gelu(y).sum()


def one_column(model, x):
    return model(x[..., :1]).sum()


PROGRAMS = (pooled, with_views, returned, one_column)


def run(function, model, x):
    x = x.detach().clone().requires_grad_()
    results = function(model, x)
    results = results if isinstance(results, tuple) else (results,)
    gradients = torch.autograd.grad(sum(result.sum() for result in results), [x, *model.parameters()], allow_unused=True)
    return [*results, *(gradient for gradient in gradients if gradient is not None)]


@pytest.mark.parametrize("backend", ["inductor", "aot_eager"])
@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients(program, groups, order, backend):
    torch.manual_seed(0)
    model, x = Block(8, groups), torch.randn(2, 8, 6, 10).contiguous(memory_format=order)
    expected = run(program, model, x)
    found = run(torch.compile(program, backend=backend), model, x)
    assert len(found) == len(expected)
    for result, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-4)
        assert result.stride() == wanted.stride()


@pytest.mark.parametrize("partitioner", ["min_cut", "default"])
def test_sizes_that_change(partitioner):
    torch.manual_seed(0)
    model = Block(8)
    compiled = torch.compile(pooled, options={"partitioner": partitioner})
    for size in (6, 8, 10, 12):
        x = torch.randn(2, 8, size, size)
        for result, wanted in zip(run(compiled, model, x), run(pooled, model, x), strict=True):
            torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)


def test_nothing_is_turned(tmp_path):
    """No kernel brings what a convolution made into another order."""
    first, second = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.Conv2d(16, 32, 3, stride=2, bias=False)
    model = nn.Sequential(first, nn.BatchNorm2d(16), nn.GELU(), second)
    compiled = torch.compile(lambda x: model(x).square().mean(), options={"dump": str(tmp_path)})
    compiled(torch.randn(2, 3, 16, 16)).backward()
    groups = "".join(path.read_text() for path in sorted(tmp_path.rglob("*fusion.txt")))
    assert "template convolution" in groups and not re.search(r"Pointwise convolution\w*, reads", groups)


@pytest.mark.parametrize("program", (pooled, with_views), ids=lambda program: program.__name__)
def test_hooks_may_give_what_was_saved_in_another_order(program):
    torch.manual_seed(0)
    model, x = Block(8), torch.randn(2, 8, 6, 10)
    compiled = torch.compile(program)
    with torch.autograd.graph.saved_tensors_hooks(lambda kept: kept.detach().numpy().copy("C"), torch.from_numpy):
        found = run(compiled, model, x)
    for result, wanted in zip(found, run(program, model, x), strict=True):
        torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-4)
