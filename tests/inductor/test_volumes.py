"""Convolutions over volumes and to few channels, plain and transposed, run as templates over positions and agree with eager
code on NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.differences import assert_frozen_model_agrees
from tests.inductor.native_nodes import source_of

# Size of the input; that of the weight; groups; stride, padding, dilation.
PLAIN = [
    ((1, 1, 12, 11, 10), (16, 1, 3, 5, 3), 1, 2, (1, 2, 1), 1),
    ((2, 5, 6, 7, 20), (3, 5, 3, 3, 3), 1, 1, 1, 1),
    ((1, 8, 5, 16, 16), (8, 8, 3, 3, 3), 1, 1, 1, 1),
    ((1, 4, 7, 9, 33), (1, 4, 2, 1, 3), 1, (1, 2, 3), (2, 0, 4), (2, 3, 2)),
    ((2, 12, 4, 6, 18), (24, 1, 3, 3, 3), 12, 1, 1, 1),
    ((1, 12, 6, 18, 18), (15, 4, 3, 3, 3), 3, (2, 1, 1), 1, (1, 2, 1)),
    ((1, 6, 3, 1, 40), (13, 6, 1, 1, 1), 1, 1, 0, 1),
    ((0, 3, 6, 6, 20), (4, 3, 3, 3, 3), 1, 1, 1, 1),
    ((1, 2, 4, 4, 20), (2, 2, 3, 3, 3), 1, 1, 5, 1),
    ((2, 7, 30), (3, 7, 5), 1, 2, 3, 2),
    ((1, 6, 20, 37), (2, 6, 3, 4), 1, 1, (2, 0), 1),
]
# The same, and output_padding, of transposed ones.
TRANSPOSED = [
    ((1, 6, 4, 5, 16), (6, 3, 3, 3, 3), 1, 2, 1, 1, 1),
    ((2, 4, 3, 3, 20), (4, 2, 2, 2, 2), 1, 2, 0, 1, 0),
    ((1, 8, 3, 4, 17), (8, 3, 3, 2, 4), 4, (1, 3, 3), (1, 0, 4), (2, 1, 1), (0, 2, 1)),
    ((1, 32, 2, 2, 2), (32, 32, 3, 3, 3), 1, 2, 1, 1, 1),
    ((1, 3, 2, 2, 16), (3, 5, 1, 1, 1), 1, (1, 1, 16), 0, 1, 0),
    ((1, 3, 2, 2, 5), (3, 5, 1, 1, 2), 1, (1, 1, 17), 0, 1, 0),
    ((1, 4, 5, 5, 18), (4, 2, 3, 3, 3), 1, 1, 3, 1, 0),
    ((0, 4, 5, 5, 18), (4, 2, 3, 3, 3), 1, 2, 1, 1, 0),
]


def _convolve(x, weight, bias, steps, transposed, extra, groups):
    rank = weight.dim() - 2
    stride, padding, dilation = ([step] * rank if isinstance(step, int) else list(step) for step in steps)
    extra = [extra] * rank if isinstance(extra, int) else list(extra)
    return torch.convolution(x, weight, bias, stride, padding, dilation, transposed, extra, groups)


def _check(size, filters, groups, steps, transposed, extra):
    torch.manual_seed(0)
    outputs = filters[1] * groups if transposed else filters[0]
    x, weight, bias = torch.randn(size), torch.randn(filters) * 0.2, torch.randn(outputs)

    def function(x, weight, bias):
        return _convolve(x, weight, bias, steps, transposed, extra, groups).relu() + 1

    got = torch.compile(function, fullgraph=True)(x, weight, bias)
    want = function(x.double(), weight.double(), bias.double())  # float64 runs on NumPy
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=2e-4)
    np.testing.assert_allclose(function(x, weight, bias).numpy(), want.numpy(), rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_plain(case):
    size, filters, groups, *steps = case
    _check(size, filters, groups, steps, False, 0)


@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_transposed(case):
    size, filters, groups, *steps, extra = case
    _check(size, filters, groups, steps, True, extra)


def test_frozen_weights_and_threads():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv3d(1, 12, 5, 2, 2), torch.nn.InstanceNorm3d(12), torch.nn.ReLU(), torch.nn.Conv3d(12, 9, 3, padding=1, groups=3),
        torch.nn.BatchNorm3d(9), torch.nn.ConvTranspose3d(9, 2, 3, 2, 1, 1), torch.nn.Softmax(1),
    ).eval()  # fmt: skip
    assert_frozen_model_agrees(model, torch.randn(2, 1, 18, 17, 34))


def test_open_sizes():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv3d(3, 8, 3, 2, 1), torch.nn.ConvTranspose3d(8, 3, 2, 2)).eval()
    compiled = torch.compile(model, dynamic=True)
    for batch, side in ((2, 12), (3, 17), (1, 33)):
        x = torch.randn(batch, 3, 5, side, side + 1)
        np.testing.assert_allclose(compiled(x).detach().numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_what_the_template_takes():
    few = source_of(lambda x, w: F.conv3d(x, w, None, 1, 1), torch.randn(1, 4, 8, 8, 16), torch.randn(4, 4, 3, 3, 3))
    assert "rl::convolve_volumes(" in few
    many = source_of(lambda x, w: F.conv3d(x, w, None, 1, 1), torch.randn(1, 64, 8, 8, 16), torch.randn(64, 64, 3, 3, 3))
    assert "rl::convolve_volumes(" not in many


def test_gradients():
    torch.manual_seed(0)
    leaves = [torch.randn(1, 4, 6, 6, 18), torch.randn(6, 2, 3, 3, 3), torch.randn(6)]

    def gradients(function):
        inputs = [leaf.detach().clone().requires_grad_() for leaf in leaves]
        return torch.autograd.grad(function(*inputs).square().sum(), inputs)

    def function(x, weight, bias):
        return F.conv3d(x, weight, bias, (1, 2, 2), 1, groups=2)

    for got, want in zip(gradients(torch.compile(function)), gradients(function), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-3, atol=1e-3)
