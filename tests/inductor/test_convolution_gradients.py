"""Gradients of convolutions of every rank as native code agree with eager's."""

from __future__ import annotations

import warnings

import pytest

import rushlight as torch
from rushlight.inductor.lowering import FALLBACKS
from rushlight.nn import functional as F
from rushlight.ops.registry import aten
from tests.inductor.native_nodes import source_of

# Sizes of the input; outputs, kernel; stride, padding, dilation; groups.
PLAIN = [
    ((2, 3, 12, 11), 8, (3, 3), [1, 1], [1, 1], [1, 1], 1),
    ((2, 16, 9, 8), 40, (3, 3), [2, 2], [1, 1], [1, 1], 1),
    ((1, 32, 14, 14), 32, (3, 3), [1, 1], [1, 1], [1, 1], 1),
    ((3, 32, 6, 6), 64, (1, 1), [1, 1], [0, 0], [1, 1], 1),
    ((3, 64, 7, 7), 32, (1, 1), [2, 2], [0, 0], [1, 1], 1),
    ((1, 3, 23, 20), 24, (7, 7), [2, 2], [3, 3], [1, 1], 1),
    ((2, 5, 13, 17), 7, (2, 3), [3, 2], [0, 2], [2, 3], 1),
    ((2, 5, 15, 16), 7, (3, 3), [2, 4], [3, 1], [2, 2], 1),
    ((2, 4, 5, 5), 3, (1, 1), [3, 3], [2, 2], [1, 1], 1),
    ((1, 33, 20, 9), 13, (4, 1), [1, 1], [0, 0], [1, 1], 1),
    ((2, 1, 6, 6), 1, (3, 3), [1, 1], [1, 1], [1, 1], 1),
    ((2, 8, 9, 7), 8, (3, 2), [2, 1], [0, 1], [1, 2], 4),
    ((2, 8, 19, 18), 16, (3, 3), [1, 1], [1, 1], [1, 1], 8),
    ((2, 8, 9, 40), 8, (5, 3), [2, 2], [2, 1], [1, 1], 8),
    ((3, 128, 12, 9), 50, (3, 3), [1, 1], [1, 1], [1, 1], 1),
    ((2, 64, 11, 24), 53, (4, 2), [2, 2], [1, 0], [1, 2], 1),
    ((1, 256, 15, 15), 96, (3, 3), [2, 1], [2, 2], [1, 2], 2),
    ((2, 32, 5, 3), 260, (2, 2), [3, 4], [4, 2], [1, 1], 1),
    ((2, 8, 17), 12, (3,), [1], [1], [1], 1),
    ((1, 8, 18), 8, (4,), [3], [2], [2], 4),
    ((1, 4, 5, 6, 7), 6, (3, 3, 3), [1, 1, 1], [1, 1, 1], [1, 1, 1], 1),
    ((2, 4, 7, 6, 5), 4, (2, 1, 3), [2, 1, 3], [1, 0, 2], [2, 1, 1], 2),
    ((2, 24, 5, 6, 5), 4, (3, 2, 2), [1, 1, 1], [1, 0, 1], [1, 1, 1], 1),
    ((1, 6, 4, 5, 6), 8, (1, 3, 3), [2, 1, 1], [0, 1, 1], [1, 1, 1], 1),
    ((2, 6, 5, 5, 4), 12, (3, 3, 3), [1, 2, 1], [1, 1, 0], [2, 1, 1], 3),
]
# The same with output_padding before groups.
TRANSPOSED = [
    ((2, 8, 9), 5, (4,), [2], [1], [1], [0], 1),
    ((2, 8, 5, 7), 5, (3, 2), [2, 1], [1, 0], [1, 1], [1, 0], 1),
    ((1, 8, 5, 4), 5, (3, 4), [2, 3], [2, 1], [2, 1], [0, 2], 4),
    ((2, 32, 6, 5), 32, (4, 4), [2, 2], [1, 1], [1, 1], [0, 0], 1),
    ((1, 4, 3, 4, 3), 2, (3, 2, 2), [2, 2, 1], [1, 0, 1], [1, 1, 1], [1, 0, 0], 1),
    ((2, 2, 4), 4, (5,), [1], [2], [4], [1], 2),
    ((2, 2, 4, 4), 4, (5, 6), [2, 1], [2, 3], [4, 4], [3, 1], 2),
    ((2, 2, 4, 4, 4), 2, (4, 5, 6), [3, 2, 1], [1, 2, 3], [4, 4, 4], [2, 3, 1], 1),
]


def gradients(function, leaves, weights):
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    return torch.autograd.grad((function(*leaves) * weights).sum(), leaves)


def check(function, *leaves, tolerance=1e-4, **options):
    shape, kind = function(*leaves).shape, leaves[0].dtype
    weights = torch.randn(shape).to(kind)
    wanted = gradients(function, leaves, weights)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile")
        found = gradients(torch.compile(function, fullgraph=True, **options), leaves, weights)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype is theirs.dtype and ours.shape == theirs.shape and ours.stride() == theirs.stride()
        scale = float(theirs.abs().max()) + 1e-6
        torch.testing.assert_close(ours / scale, theirs / scale, rtol=tolerance, atol=tolerance)


def tensors(sizes, outputs, kernel, groups, transposed=False):
    torch.manual_seed(0)
    lead = (sizes[1], outputs) if transposed else (outputs, sizes[1] // groups)
    return torch.randn(*sizes), torch.randn(*lead, *kernel), torch.randn(outputs * groups if transposed else outputs)


def test_no_gradient_is_an_eager_kernel():
    assert aten("convolution_backward") not in FALLBACKS


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_plain(case):
    sizes, outputs, kernel, stride, padding, dilation, groups = case
    convolve = getattr(F, f"conv{len(kernel)}d")

    def function(x, weight, bias):
        return torch.relu(convolve(x, weight, bias, stride, padding, dilation, groups))

    check(function, *tensors(sizes, outputs, kernel, groups))


@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_transposed(case):
    sizes, outputs, kernel, stride, padding, dilation, output_padding, groups = case
    convolve = getattr(F, f"conv_transpose{len(kernel)}d")

    def function(x, weight, bias):
        return torch.sin(convolve(x, weight, bias, stride, padding, output_padding, groups, dilation))

    check(function, *tensors(sizes, outputs, kernel, groups, transposed=True))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
def test_low_precision(kind):
    leaves = [leaf.to(kind) for leaf in tensors((2, 16, 9, 10), 24, (3, 3), 1)]
    check(lambda x, weight, bias: F.conv2d(x, weight, bias, 2, 1), *leaves, tolerance=3e-2)


def test_float64_runs_in_eager():
    leaves = [leaf.to(torch.float64) for leaf in tensors((2, 3, 6, 6), 4, (3, 3), 1)]
    check(lambda x, weight, bias: F.conv2d(x, weight, bias, 1, 1), *leaves, tolerance=1e-9)


def test_only_some_gradients():
    x, weight, _ = tensors((2, 16, 10, 10), 32, (3, 3), 1)
    check(lambda weight: F.conv2d(x, weight, None, 1, 1), weight)
    check(lambda x: F.conv2d(x, weight, None, 2, 1), x)


def test_inputs_that_lie_in_other_orders():
    x, weight, bias = tensors((2, 16, 10, 12), 32, (3, 3), 1)
    x = x.to(memory_format=torch.channels_last)
    check(lambda x, weight, bias: F.conv2d(x, weight, bias, 1, 1), x, weight, bias)
    wide = torch.randn(2, 32, 12, 20)[:, ::2, 1:-1, ::2]
    check(lambda weight: F.conv2d(wide, weight[..., ::2, :], None, 2), torch.randn(8, 16, 6, 3))
    steps_of_channels = torch.randn(1, 2, 10, 20)[..., ::2]  # from column to column as far as a pixel's channels reach
    check(lambda weight: F.conv2d(steps_of_channels, weight), torch.randn(4, 2, 3, 3))


def test_open_sizes():
    torch.manual_seed(0)
    weight, bias = torch.randn(32, 16, 3, 3), torch.randn(32)

    def function(x, weight, bias):
        return torch.relu(F.conv2d(x, weight, bias, 2, 1))

    compiled = torch.compile(function, fullgraph=True, dynamic=True)
    for sizes in ((2, 16, 12, 13), (3, 16, 9, 20), (1, 16, 40, 7)):
        leaves = [torch.randn(*sizes), weight, bias]
        weights = torch.randn(function(*leaves).shape)
        for ours, theirs in zip(gradients(compiled, leaves, weights), gradients(function, leaves, weights), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("case", [case for case in PLAIN if len(case[2]) == 2], ids=str)
def test_weights_that_lie_channels_last(case):
    sizes, outputs, kernel, stride, padding, dilation, groups = case
    x, weight, bias = tensors(sizes, outputs, kernel, groups)
    last = [tensor.contiguous(memory_format=torch.channels_last) for tensor in (x, weight)]

    def function(x, weight, bias):
        return torch.relu(F.conv2d(x, weight, bias, stride, padding, dilation, groups))

    check(function, *last, bias)
    check(function, x, last[1], bias)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["first", "last"])
@pytest.mark.parametrize(("channels", "outputs", "side", "padding"), [(64, 48, 20, 1), (33, 70, 17, 0), (24, 40, 30, 2)])
def test_by_winograd(channels, outputs, side, padding, layout):
    def function(x, weight, bias):
        return torch.relu(F.conv2d(x, weight, bias, padding=padding))

    x, weight, bias = tensors((2, channels, side, side), outputs, (3, 3), 1)
    check(function, x.contiguous(memory_format=layout), weight.contiguous(memory_format=layout), bias)


def test_infinite_gradients_stay_where_they_belong():
    x, weight, _ = tensors((1, 64, 20, 20), 48, (3, 3), 1)
    weights = torch.randn(1, 48, 20, 20)
    weights[0, 5, 3, 7], weights[0, 6, 12, 12] = float("inf"), float("nan")

    def function(x):
        return F.conv2d(x, weight, padding=1)

    (wanted,), (found,) = gradients(function, [x], weights), gradients(torch.compile(function), [x], weights)
    assert torch.equal(wanted.isfinite(), found.isfinite())
    finite = wanted.isfinite()
    torch.testing.assert_close(found[finite], wanted[finite], rtol=1e-4, atol=1e-3)


def to_weight(x, grad, weight):
    return aten("convolution_backward")(grad, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False])[1]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["first", "last"])
def test_weights_by_winograd(layout):
    """An image whose channels do not lie side by side is brought into that order first."""
    x, weight, _ = tensors((2, 64, 20, 20), 48, (3, 3), 1)
    inputs = [x.contiguous(memory_format=layout), torch.randn(2, 48, 20, 20), weight]
    assert "rl::conv2d_weight_winograd" in source_of(to_weight, *inputs)
    torch.testing.assert_close(torch.compile(to_weight)(*inputs), to_weight(*inputs), rtol=1e-4, atol=1e-3)
    few = [tensor[:, :, :8, :8].contiguous() for tensor in inputs[:2]]
    assert "rl::conv2d_weight_gradient" in source_of(to_weight, *few, weight)


def test_weights_by_winograd_of_open_sizes():
    """The program that was made for many pixels is right for few and for more."""
    compiled, weight = torch.compile(to_weight, fullgraph=True, dynamic=True), torch.randn(32, 64, 3, 3)
    for images, height, width in ((3, 24, 20), (2, 3, 2), (9, 31, 40)):
        inputs = [torch.randn(images, 64, height, width), torch.randn(images, 32, height, width), weight]
        torch.testing.assert_close(compiled(*inputs), to_weight(*inputs), rtol=1e-4, atol=1e-2)


def test_infinite_gradients_of_weights_stay_where_they_belong():
    x, weight, _ = tensors((1, 64, 24, 24), 48, (3, 3), 1)
    grad = torch.randn(1, 48, 24, 24)
    grad[0, 5, 3, 7], x[0, 9, 0, 0] = float("inf"), float("nan")
    wanted, found = to_weight(x, grad, weight), torch.compile(to_weight)(x, grad, weight)
    assert torch.equal(wanted.isnan(), found.isnan())
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("sizes, kernel", [((2, 48, 9, 9), (3, 3)), ((2, 6, 5, 4, 6), (3, 2, 2))], ids=str)
def test_one_output_for_each_group_of_several_channels(sizes, kernel):
    """Which are no filters of one channel each."""
    x, weight, bias = tensors(sizes, 2, kernel, 2)
    if len(sizes) == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    check(lambda x, weight, bias: getattr(F, f"conv{len(kernel)}d")(x, weight, bias, groups=2), x, weight, bias)
