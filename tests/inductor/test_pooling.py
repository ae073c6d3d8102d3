"""Pooling and its gradients as native code agree with eager's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.differences import difference

# kernel_size, stride, padding, dilation, ceil_mode
WINDOWS = [
    (2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 1, 1, 1, False), (3, 2, 0, 1, True), ((3, 2), (1, 3), (1, 0), 1, False),
    (2, 3, 0, 1, False), (3, 2, 1, 2, False), (2, 2, 1, 3, True), (5, 5, 2, 1, True),
]  # fmt: skip


def check(function, *inputs, dynamic=None):
    def gradients(call):
        def run(*tensors):
            leaf, *others = (tensor.detach() for tensor in tensors)
            results = call(leaf.requires_grad_(), *others)
            first = results[0] if isinstance(results, tuple) else results
            weights = (torch.arange(first.numel()) % 7 - 2.5).view(first.shape)
            return results, torch.autograd.grad((first * weights).sum(), leaf)

        return run

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile")
        compiled = torch.compile(function, fullgraph=True, dynamic=dynamic)
        problem = difference(gradients(function), gradients(compiled), lambda: [tensor.clone() for tensor in inputs])
    assert not problem


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("settings", [(3, 2, 1), (2, 2, 0, 1, True), (9, 3, 4), ((1, 13), 1, (0, 6))], ids=str)
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
def test_maxima_of_integers(settings, kind, order):
    """Padding is the least integer, which an image may contain, too: then the first element inside is the largest."""
    least, most = torch.iinfo(kind).min, min(torch.iinfo(kind).max, 2**40)
    x = torch.randint(max(least, -(2**40)), most, (2, 3, 20, 21)).to(kind)
    x[0, 0] = least
    x = x.contiguous(memory_format=order)
    compiled = torch.compile(lambda x: F.max_pool2d(x, *settings, return_indices=True), fullgraph=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile")
        found = compiled(x)
    for result, wanted in zip(found, F.max_pool2d(x, *settings, return_indices=True), strict=True):
        torch.testing.assert_close(result, wanted)


def image(*shape, ties=False):
    torch.manual_seed(0)
    return torch.randint(-3, 4, shape).float() if ties else torch.randn(*shape)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_max_pool(window):
    def function(x):
        return F.max_pool2d(x, *window[:4], ceil_mode=window[4], return_indices=True)

    check(function, image(2, 3, 11, 13, ties=True))


@pytest.mark.parametrize("with_padding", [True, False])
@pytest.mark.parametrize("window", [window for window in WINDOWS if window[3] == 1], ids=str)
def test_avg_pool(window, with_padding):
    check(lambda x: F.avg_pool2d(x, *window[:3], ceil_mode=window[4], count_include_pad=with_padding), image(2, 3, 11, 13))


@pytest.mark.parametrize("divisor", [None, 3])
def test_avg_pool_without_padding(divisor):
    check(lambda x: F.avg_pool2d(x, 3, 2, divisor_override=divisor).tanh(), image(3, 9, 10))


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_the_place_of_values_without_an_order(value):
    x = image(1, 2, 6, 6)
    x[0, 0, 1:4, 1:4] = value
    for window in ((2, 2, 0), (3, 2, 1), (3, 1, 1)):
        found = [
            call(lambda x, window=window: F.max_pool2d(x, *window, return_indices=True))(x.clone().requires_grad_())
            for call in (lambda f: f, torch.compile)
        ]
        assert found[0][1].tolist() == found[1][1].tolist()


def test_channels_last_and_other_types():
    check(lambda x: F.max_pool2d(x, 3, 2, 1), image(2, 4, 8, 8).contiguous(memory_format=torch.channels_last))
    check(lambda x: F.max_pool2d(x.double(), 2), image(2, 4, 8, 8))


def test_open_sizes():
    for size in (8, 11):
        check(lambda x: F.max_pool2d(x, 3, 2, 1) + F.avg_pool2d(x, 3, 2, 1), image(size, 2, size + 3, 9), dynamic=True)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["first", "last"])
@pytest.mark.parametrize(("size", "kernel", "steps"), [
    ((2, 3, 20, 21), 13, (1, 6, 1, False)), ((1, 4, 40, 40), (16, 16), (16, 0, 1, False)),
    ((1, 2, 30, 30), (7, 5), ((3, 2), (3, 1), 2, True)), ((2, 2, 33, 17), (9, 4), ((2, 4), (4, 2), 1, True)),
])  # fmt: skip
def test_large_windows(size, kernel, steps, layout):
    torch.manual_seed(0)
    x = torch.randn(size).contiguous(memory_format=layout)
    x[0, 0, 3, 4] = x[0, 0, 3, 5] = x[0, 1, 5, 6] = float("nan")
    x[-1, -1] = float("-inf")

    def function(x):
        return F.max_pool2d(x, kernel, *steps, return_indices=True)

    with warnings.catch_warnings(action="error"):
        for want, got in zip(function(x), torch.compile(function)(x), strict=True):
            np.testing.assert_array_equal(got.numpy(), want.numpy())
        x = torch.randn(size).contiguous(memory_format=layout)
        want = F.avg_pool2d(x, kernel, *steps[:2], steps[3], False)
        got = torch.compile(lambda x: F.avg_pool2d(x, kernel, *steps[:2], steps[3], False))(x)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-5)


# kernel_size, stride, padding, dilation, ceil_mode
LONG_WINDOWS = [
    ((1, 300), None, 0, 1, False), ((1, 200), (1, 50), (0, 100), 1, True), ((1, 170), 1, (0, 20), 1, False),
    ((1, 60), (1, 45), (0, 30), 3, True), ((160, 1), (2, 1), (70, 0), 1, False), ((40, 45), (7, 40), (20, 9), 1, True),
    ((3, 90), (1, 80), (1, 45), (2, 3), False), ((3, 70), (3, 1), (1, 3), 1, True), ((1, 90), (2, 2), (0, 40), 1, False),
]  # fmt: skip


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["first", "last"])
@pytest.mark.parametrize("window", LONG_WINDOWS, ids=str)
def test_windows_of_long_rows_or_columns(window, layout):
    x = image(2, 4, 160 if window[0][0] > 3 else 6, 330, ties=True).contiguous(memory_format=layout)
    x[1, 2] = float("-inf")
    check(lambda x: F.max_pool2d(x, *window[:4], ceil_mode=window[4], return_indices=True), x)
    if window[3] == 1:
        x = image(*x.shape).contiguous(memory_format=layout)
        for with_padding in (True, False):
            check(lambda x, b=with_padding: F.avg_pool2d(x, *window[:3], ceil_mode=window[4], count_include_pad=b), x)


def test_the_last_of_several_nans_in_a_long_window():
    x = image(2, 3, 1500)
    x[0, 0, 100] = x[0, 0, 270] = x[0, 1, 700] = x[1, 2, 1499] = float("nan")

    def function(x):
        return F.max_pool1d(x, 300, 120, 90, return_indices=True)

    for want, got in zip(function(x), torch.compile(function, fullgraph=True)(x), strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_long_windows_in_one_dimension():
    check(lambda x: F.avg_pool1d(x, 300) + F.max_pool1d(x, 500, 300, 100), image(2, 3, 1200))
    check(lambda x: F.avg_pool1d(x.double(), 300, 7), image(2, 3, 700))
    check(lambda x: F.max_pool1d(x.double(), 300, 7, 11), image(2, 3, 700))
    check(lambda x: F.avg_pool1d(x, 300, 100, 150, count_include_pad=False), image(2, 3, 700), dynamic=True)


def test_long_windows_of_bfloat16():
    x = image(2, 3, 1200).bfloat16()
    for function in (lambda x: F.avg_pool1d(x, 300), lambda x: F.max_pool1d(x, 300, 70)):
        want, got = function(x.float()), torch.compile(function, fullgraph=True)(x)
        assert torch.allclose(got.float(), want, rtol=1e-2, atol=1e-2)
