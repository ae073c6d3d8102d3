"""Depthwise convolutions of channels-last images and their gradients run as templates and agree with eager."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.differences import assert_frozen_model_agrees
from tests.inductor.native_nodes import source_of

# Size of the input; the kernel; stride, padding, dilation.
CASES = [
    ((1, 32, 7, 7), (3, 3), 1, 1, 1),
    ((2, 24, 9, 11), (3, 3), 2, 1, 1),
    ((2, 58, 8, 7), (5, 5), 1, 2, 1),
    ((1, 40, 13, 5), (5, 5), 2, 2, 1),
    ((2, 5, 10, 10), (3, 2), (1, 2), (0, 1), 1),
    ((1, 17, 12, 12), (3, 3), 1, 2, 2),
    ((1, 33, 12, 15), (3, 3), 2, 2, 2),
    ((1, 16, 11, 11), (3, 3), 3, 1, 1),
    ((1, 20, 9, 9), (1, 1), 2, 0, 1),
    ((1, 36, 10, 9), (4, 4), 3, 0, 2),
    ((1, 48, 2, 2), (7, 7), 2, 3, 1),
    ((3, 32, 30, 1), (3, 1), 1, (1, 0), 1),
    ((1, 19, 40, 40), (3, 5), (2, 3), (1, 2), (3, 1)),
    ((2, 1, 30, 37), (7, 7), 1, 3, 1),
    ((3, 1, 20, 75), (3, 3), (2, 1), 0, 2),
]


def _results(function, *inputs):
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    weights = (torch.arange(result.numel()) % 7 - 2.5).view(result.shape).contiguous(memory_format=torch.channels_last)
    return [result, *torch.autograd.grad((result * weights).sum(), leaves)]


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format], ids=["last", "first"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolutions_and_gradients(case, layout):
    size, kernel, *steps = case
    torch.manual_seed(0)
    inputs = torch.randn(size).contiguous(memory_format=layout), torch.randn(size[1], 1, *kernel), torch.randn(size[1])

    def function(x, weight, bias):
        return F.conv2d(x, weight, bias, *steps, groups=size[1]).relu() + 1

    compiled = torch.compile(function, fullgraph=True)
    for want, got in zip(_results(function, *inputs), _results(compiled, *inputs), strict=True):
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-4)


def test_one_channel_is_a_plane_too():
    x, weight = torch.randn(2, 1, 40, 40), torch.randn(1, 1, 3, 3)
    assert "rl::conv2d(" in source_of(lambda x, weight: F.conv2d(x, weight, padding=1), x, weight)
    assert "rl::conv2d(" not in source_of(lambda x, weight: F.conv2d(x, weight), x, weight.expand(5, 1, 3, 3).contiguous())


def test_frozen_weights_and_threads():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 40, 1), torch.nn.Conv2d(40, 40, 3, 2, 1, groups=40, bias=False), torch.nn.BatchNorm2d(40),
        torch.nn.SiLU(), torch.nn.Conv2d(40, 40, 5, padding=2, groups=40),
    ).eval()  # fmt: skip
    assert_frozen_model_agrees(model, torch.randn(3, 3, 33, 31))


def test_open_sizes():
    compiled = torch.compile(lambda x, weight: F.conv2d(x, weight, None, 2, 1, groups=12).sum(), dynamic=True)
    for batch, side in ((2, 9), (3, 12), (1, 8)):
        torch.manual_seed(side)
        x = torch.randn(batch, 12, side, side + 1).contiguous(memory_format=torch.channels_last)
        leaves = [(x.clone().requires_grad_(), torch.randn(12, 1, 3, 3).requires_grad_())]
        leaves.append(tuple(leaf.detach().clone().requires_grad_() for leaf in leaves[0]))
        compiled(*leaves[0]).backward()
        F.conv2d(*leaves[1], None, 2, 1, groups=12).sum().backward()
        for leaf, expected in zip(*leaves, strict=True):
            np.testing.assert_allclose(leaf.grad.numpy(), expected.grad.numpy(), rtol=1e-4, atol=1e-4)
