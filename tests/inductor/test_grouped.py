"""Convolutions in groups of a few channels, and their gradients, run as templates and agree with eager."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.differences import assert_frozen_model_agrees
from tests.inductor.native_nodes import source_of

# Size of the input; that of the weight; groups; stride, padding, dilation.
CASES = [
    ((2, 32, 9, 9), (32, 4, 3, 3), 8, 1, 1, 1),
    ((1, 64, 8, 11), (64, 16, 3, 3), 4, 2, 1, 1),
    ((2, 12, 10, 10), (24, 1, 3, 2), 12, (1, 2), (0, 1), 1),
    ((1, 36, 12, 12), (60, 3, 3, 3), 12, 1, 2, 2),
    ((1, 72, 7, 7), (48, 24, 3, 3), 3, 1, 1, 1),
    ((1, 80, 9, 5), (80, 40, 1, 1), 2, 1, 0, 1),
    ((2, 100, 6, 6), (40, 10, 4, 4), 10, 3, 2, 1),
    ((1, 192, 6, 6), (192, 96, 3, 3), 2, 1, 1, 1),
    ((1, 200, 6, 6), (200, 100, 3, 3), 2, 1, 1, 1),
]


def _results(function, *inputs):
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    weights = (torch.arange(result.numel()) % 7 - 2.5).view(result.shape)
    return [result, *torch.autograd.grad((result * weights).sum(), leaves)]


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format], ids=["last", "first"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolutions_and_gradients(case, layout):
    size, filters, groups, *steps = case
    torch.manual_seed(0)
    inputs = torch.randn(size).contiguous(memory_format=layout), torch.randn(filters) * 0.2, torch.randn(filters[0])

    def function(x, weight, bias):
        return F.conv2d(x, weight, bias, *steps, groups=groups).relu() + 1

    compiled = torch.compile(function, fullgraph=True)
    for want, got in zip(_results(function, *inputs), _results(compiled, *inputs), strict=True):
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=2e-4)


def test_frozen_weights_and_threads():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 96, 1), torch.nn.Conv2d(96, 96, 3, 2, 1, groups=8, bias=False), torch.nn.BatchNorm2d(96),
        torch.nn.ReLU(), torch.nn.Conv2d(96, 64, 5, padding=2, groups=16), torch.nn.ConvTranspose2d(64, 32, 3, 2, groups=4),
    ).eval()  # fmt: skip
    assert_frozen_model_agrees(model, torch.randn(3, 3, 33, 31))


def test_open_sizes():
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(12, 18, 3, 2, 1, groups=3)
    compiled = torch.compile(lambda x: layer(x).sum())
    for batch, side in ((2, 9), (3, 12), (1, 8)):
        leaves = [torch.randn(batch, 12, side, side + 1).requires_grad_(), *layer.parameters()]
        compiled(leaves[0]).backward()
        found = [leaf.grad for leaf in leaves]
        for leaf in leaves:
            leaf.grad = None
        layer(leaves[0]).sum().backward()
        for got, leaf in zip(found, leaves, strict=True):
            np.testing.assert_allclose(got.numpy(), leaf.grad.numpy(), rtol=1e-4, atol=1e-4)
        layer.zero_grad()


def test_open_channels():
    compiled = torch.compile(lambda x, weight: F.conv2d(x, weight, None, 1, 1, groups=2), dynamic=True)
    for channels in (6, 8, 10):
        torch.manual_seed(channels)
        x, weight = torch.randn(1, channels, 5, 5), torch.randn(channels, channels // 2, 3, 3)
        np.testing.assert_allclose(
            compiled(x, weight).numpy(), F.conv2d(x, weight, None, 1, 1, groups=2).numpy(), rtol=1e-4, atol=1e-4
        )


def text_of(channels, groups):
    def function(x, weight):
        return F.conv2d(x, weight, None, 1, 1, groups=groups)

    return source_of(function, torch.zeros(1, channels, 8, 8), torch.zeros(channels, channels // groups, 3, 3))


def test_text():
    text = text_of(64, 16)
    assert "rl::pack_groups(in1, 16L, 4L, 4L, 9L, true, panels);" in text
    assert "rl::conv2d_grouped(in0, rl::image_strides{4096L, 1L, 512L, 64L}, panels, shape, scratch," in text
    assert "rl::epilogue_of<32>(" in text and "rl::epilogue_of<1>(" in text_of(72, 12)
    assert "rl::conv2d(" in text_of(400, 4)  # groups wide enough to be products of their own
