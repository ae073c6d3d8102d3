"""rushlight/image.h, winograd.h, winograd_weight.h and depthwise.h against float64, for inputs in both orders of channels."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest

from tests.inductor.native.native_build import aligned
from tests.inductor.native.test_products import THREADS, convolve, element_strides, longs, random, tolerance

PANEL = 64  # no panel has more columns


def channels_last(x: np.ndarray) -> np.ndarray:
    """The same values, the channels side by side in memory."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def run(kernels, name, scratch, depth, x, weight, stride=(1, 1), padding=(0, 0), dilation=(1, 1)) -> np.ndarray:
    """The result in NCHW, of one native function."""
    want = convolve(x, weight, stride, padding, dilation, 1)
    shape = longs([*x.shape, weight.shape[0], *weight.shape[2:], *stride, *padding, *dilation, 1])
    threads = max(os.cpu_count() or 1, THREADS)
    space = aligned(kernels.call(scratch, shape, threads, result=ctypes.c_long) // 4)
    packed, bias = aligned(depth * (weight.shape[0] + PANEL)), random(weight.shape[0], seed=9)
    out = np.full((*want.shape[:1], *want.shape[2:], want.shape[1]), np.nan, np.float32)
    kernels.call(name, x, longs(element_strides(x)), weight, bias, packed, out, shape, space)
    return out.transpose(0, 3, 1, 2) - bias[:, None, None].astype(np.float64)


def run_direct(kernels, x, weight, stride=(1, 1), padding=(0, 0), dilation=(1, 1)):
    want = convolve(x, weight, stride, padding, dilation, 1)
    got = run(kernels, "direct", "filter_bytes", weight[0].size, x, weight, stride, padding, dilation)
    np.testing.assert_allclose(got, want, rtol=0, atol=2 * tolerance(weight[0].size))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("size", [(7, 7), (14, 13), (1, 29), (9, 1), (3, 5)])
@pytest.mark.parametrize("kernel, padding", [((1, 1), (0, 0)), ((3, 3), (1, 1)), ((3, 2), (1, 2)), ((1, 5), (0, 2))])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 3)])
def test_direct(kernels, last, size, kernel, padding, stride):
    x = random(2, 5, *size)
    run_direct(kernels, channels_last(x) if last else x, random(40, 5, *kernel, seed=1), stride, padding)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("channels, outputs", [(1, 1), (1, 70), (3, 16), (64, 33), (300, 64)])
def test_direct_of_any_channels(kernels, last, channels, outputs):
    """300 channels go in parts."""
    x = random(3, channels, 9, 7)
    run_direct(kernels, channels_last(x) if last else x, random(outputs, channels, 3, 3, seed=1), padding=(1, 1))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "stride, padding, dilation", [((1, 1), (2, 2), (2, 2)), ((2, 1), (3, 1), (3, 1)), ((2, 2), (5, 4), (2, 3))]
)
def test_direct_dilated(kernels, last, stride, padding, dilation):
    x = random(1, 6, 17, 23)
    run_direct(kernels, channels_last(x) if last else x, random(7, 6, 3, 3, seed=1), stride, padding, dilation)


# Taps that lie outside of the image for whole rows and whole strips of columns, for all of them, and in parts of a panel.
BORDERS = [
    ((2, 6, 9, 40), (3, 3), (12, 12), (12, 12)), ((1, 6, 3, 3), (3, 3), (9, 9), (9, 9)), ((1, 5, 4, 5), (2, 2), (6, 7), (1, 1)),
    ((1, 700, 5, 3), (3, 3), (4, 4), (4, 4)), ((1, 700, 7, 7), (3, 3), (1, 1), (1, 1)), ((2, 4, 6, 6), (5, 7), (9, 3), (4, 1)),
]  # fmt: skip


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("size, kernel, padding, dilation", BORDERS)
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
def test_direct_with_taps_in_the_border_alone(kernels, last, size, kernel, padding, dilation, stride):
    x = random(*size)
    run_direct(kernels, channels_last(x) if last else x, random(9, size[1], *kernel, seed=1), stride, padding, dilation)


THIN = [
    ((2, 16, 9, 13), (3, 3), (1, 1), (1, 1), (1, 1)), ((1, 48, 20, 31), (5, 2), (2, 3), (2, 0), (1, 1)),
    ((1, 16, 8, 9), (3, 3), (1, 2), (12, 12), (12, 5)), ((3, 32, 3, 2), (7, 7), (1, 1), (3, 3), (1, 1)),
    ((1, 16, 6, 40), (1, 3), (1, 1), (9, 9), (1, 2)), ((1, 16, 4, 5), (1, 1), (3, 2), (2, 1), (1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("outputs", [1, 2, 3, 4])
@pytest.mark.parametrize("size, kernel, stride, padding, dilation", THIN)
def test_direct_of_few_outputs(kernels, outputs, size, kernel, stride, padding, dilation):
    weight = random(outputs, size[1], *kernel, seed=1)
    run_direct(kernels, channels_last(random(*size)), weight, stride, padding, dilation)
    part = channels_last(random(size[0], size[1] + 5, *size[2:]))[:, 3 : 3 + size[1]]
    run_direct(kernels, part, weight, stride, padding, dilation)


def test_direct_of_a_part_of_an_image(kernels):
    """Neither channels nor columns lie side by side, and channels lie in a wider image."""
    run_direct(kernels, random(2, 6, 20, 30)[:, ::2, 3:17, 2:28:2], random(16, 3, 3, 3, seed=1), padding=(1, 1))
    run_direct(kernels, channels_last(random(2, 9, 16, 15))[:, 2:7, 1:, 2:], random(16, 5, 3, 3, seed=1), padding=(1, 0))


def test_direct_of_many_images(kernels):
    run_direct(kernels, channels_last(random(40, 16, 28, 28)), random(16, 16, 3, 3, seed=1), padding=(1, 1))


def test_direct_keeps_what_is_not_finite_apart(kernels):
    x = channels_last(random(1, 20, 9, 9))
    x[0, 3, 4, 4], x[0, 5, 0, 0] = np.nan, np.inf
    got = run(kernels, "direct", "filter_bytes", 180, x, random(16, 20, 3, 3, seed=1), padding=(1, 1))
    assert np.isnan(got[:, :, 3:6, 3:6]).all() and not np.isfinite(got[:, :, :2, :2]).any()
    assert np.isfinite(got[:, :, 6:]).all() and np.isfinite(got[:, :, :, 6:]).all()


# ---- Winograd ------------------------------------------------------------------------------------------------------


def run_winograd(kernels, x, weight, padding=(1, 1)) -> np.ndarray:
    return run(kernels, "winograd", "winograd_bytes", 36 * weight.shape[1], x, weight, padding=padding)


@pytest.mark.parametrize("size", [(14, 14), (28, 28), (7, 7), (3, 3), (5, 17), (6, 4), (33, 9)])
@pytest.mark.parametrize("padding", [(1, 1), (0, 0), (2, 1)])
def test_winograd(kernels, size, padding):
    x, weight = channels_last(random(2, 32, *size)), random(48, 32, 3, 3, seed=1)
    got = run_winograd(kernels, x, weight, padding)
    np.testing.assert_allclose(got, convolve(x, weight, (1, 1), padding, (1, 1), 1), rtol=0, atol=tolerance(288) * 2)


@pytest.mark.parametrize("images, channels, outputs", [(1, 1, 1), (1, 17, 33), (9, 20, 40), (1, 160, 200), (10, 160, 200)])
def test_winograd_of_any_channels(kernels, images, channels, outputs):
    """The last two are transformed once for all threads."""
    x, weight = channels_last(random(images, channels, 14, 14)), random(outputs, channels, 3, 3, seed=1)
    want = convolve(x, weight, (1, 1), (1, 1), (1, 1), 1)
    np.testing.assert_allclose(run_winograd(kernels, x, weight), want, rtol=0, atol=tolerance(9 * channels) * 2)


def test_winograd_of_any_number_of_blocks(kernels):
    weight = random(24, 8, 3, 3, seed=1)
    for blocks in range(1, 61):
        x = channels_last(random(1, 8, 4, 4 * blocks))
        want = convolve(x, weight, (1, 1), (1, 1), (1, 1), 1)
        np.testing.assert_allclose(run_winograd(kernels, x, weight), want, rtol=0, atol=tolerance(72) * 4)


def test_winograd_keeps_what_is_not_finite_apart(kernels):
    x, weight = channels_last(random(1, 20, 12, 12)), random(40, 20, 3, 3, seed=1)
    x[0, 3, 5, 5], x[0, 7, 0, 11] = np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        want = convolve(x, weight, (1, 1), (1, 1), (1, 1), 1)
    got = run_winograd(kernels, x, weight)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)


def test_winograd_of_numbers_that_overflow_on_the_way(kernels):
    x, weight = channels_last(random(1, 16, 8, 8)), random(32, 16, 3, 3, seed=1)
    x[0, 3, 2, 2] = 2e38
    weight[:, 3] = 0.25
    got, want = run_winograd(kernels, x, weight), convolve(x, weight, (1, 1), (1, 1), (1, 1), 1)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-3)


def test_winograd_of_weights_that_lie_otherwise(kernels):
    x, weight = channels_last(random(2, 70, 9, 10)), random(37, 70, 3, 3, seed=1)
    want = run_winograd(kernels, x, weight)
    for name, order in (("winograd_last", (0, 2, 3, 1)), ("winograd_turned", (1, 0, 2, 3))):
        moved = np.ascontiguousarray(weight.transpose(order)).reshape(weight.shape)  # other elements, of the same sizes
        got = run(kernels, name, "winograd_bytes", 36 * 70, x, moved, padding=(1, 1))
        np.testing.assert_array_equal(got, want)


def check_weight(kernels, name, x, grad, padding=(1, 1), last=False, tight=4) -> None:
    """A 3 x 3 weight's gradient beside its sum in float64."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    height, width = grad.shape[2:]
    want = np.zeros((grad.shape[1], x.shape[1], 3, 3))
    for i, j in np.ndindex(3, 3):
        want[:, :, i, j] = np.einsum("nohw,nchw->oc", grad.astype(np.float64), padded[:, :, i : i + height, j : j + width])
    shape = longs([*x.shape, grad.shape[1], 3, 3, 1, 1, *padding, 1, 1, 1])
    out = np.full((*want.shape[:1], 3, 3, want.shape[1]) if last else want.shape, np.nan, np.float32)
    at, grad_at, space = longs(element_strides(x)), longs(element_strides(grad)), space_of(kernels, name, shape)
    space[:] = np.nan
    kernels.call(name, x, at, grad, grad_at, last, out, shape, space)
    got = out.transpose(0, 3, 1, 2) if last else out
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=tolerance(grad[:, 0].size) * tight)


# Few blocks, and more than are transformed at a time; that reach beyond images on all sides, or cover them exactly.
BLOCKS = [
    (1, (1, 1), (1, 1)), (1, (3, 4), (2, 2)), (1, (26, 31), (0, 2)), (2, (32, 32), (1, 1)), (40, (5, 6), (0, 1)),
    (9, (7, 7), (1, 1)), (1, (8, 150), (1, 1)), (3, (47, 48), (1, 0)),
]  # fmt: skip


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("images, size, padding", BLOCKS)
@pytest.mark.parametrize("channels, outputs", [(64, 16), (1, 70), (37, 35), (131, 48)])
def test_winograd_of_a_weight_s_gradient(kernels, last, images, size, padding, channels, outputs):
    x = channels_last(random(images, channels, *size))
    height, width = (extent + 2 * pad - 2 for extent, pad in zip(size, padding, strict=True))
    grad = channels_last(random(images, outputs, height, width, seed=1))
    check_weight(kernels, "weight_winograd", x, grad, padding, last)


def test_winograd_of_a_weight_s_gradient_of_a_part_of_an_image(kernels):
    x = channels_last(random(2, 80, 40, 30))[:, 7:71, 3:37, 2:28]
    grad = channels_last(random(2, 50, 36, 27, seed=1))[:, 3:43, 1:35, :26]
    check_weight(kernels, "weight_winograd", x, grad)


def test_winograd_of_a_weight_s_gradient_keeps_what_is_not_finite_apart(kernels):
    x, grad = channels_last(random(1, 64, 24, 24)), channels_last(random(1, 40, 24, 24, seed=1))
    x[0, 3, 0, 5], grad[0, 7, 9, 9] = np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        check_weight(kernels, "weight_winograd", x, grad)


def test_winograd_of_a_weight_s_gradient_of_numbers_that_overflow_on_the_way(kernels):
    x, grad = channels_last(random(1, 32, 24, 24)), channels_last(random(1, 40, 24, 24, seed=1))
    x[0, 10, 12, 12], grad[0, :, 10:15, 10:15] = 2e38, 0.75
    check_weight(kernels, "weight_winograd", x, grad)


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("order", [np.ascontiguousarray, channels_last], ids=["rows", "channels"])
def test_a_weight_s_gradient(kernels, last, order):
    for images, channels, size in ((1, 64, (20, 20)), (32, 4, (8, 8)), (64, 64, (2, 2))):
        x, grad = order(random(images, channels, *size)), channels_last(random(images, 32, *size, seed=1))
        check_weight(kernels, "weight_gradient", x, grad, last=last, tight=2)


# ---- depthwise -----------------------------------------------------------------------------------------------------


def space_of(kernels, name: str, shape) -> np.ndarray:
    threads = max(os.cpu_count() or 1, THREADS)
    return aligned(kernels.call(f"{name}_bytes", shape, threads, result=ctypes.c_long) // 4)


@pytest.mark.parametrize("channels", [5, 16, 33, 64])
@pytest.mark.parametrize("kernel, stride, padding", [((3, 3), (1, 1), (1, 1)), ((5, 2), (2, 1), (2, 0)), ((7, 7), (1, 2), (3, 3))])
def test_depthwise(kernels, channels, kernel, stride, padding):
    x, weight = channels_last(random(2, channels, 11, 13)), random(channels, 1, *kernel, seed=1)
    want = convolve(x, weight, stride, padding, (1, 1), channels)
    shape = longs([*x.shape, channels, *kernel, *stride, *padding, 1, 1, channels])
    packed, tight = aligned(kernel[0] * kernel[1] * (channels + PANEL)), tolerance(weight[0].size) * 2
    out = np.full((2, *want.shape[2:], channels), np.nan, np.float32)
    kernels.call("depthwise", x, longs(element_strides(x)), weight, packed, out, shape, space_of(kernels, "depthwise", shape))
    np.testing.assert_allclose(out.transpose(0, 3, 1, 2), want, rtol=0, atol=tight)

    grad = channels_last(random(*want.shape, seed=2))
    to_input = np.zeros((2, channels, 11 + 2 * padding[0], 13 + 2 * padding[1]))
    to_weight = np.zeros(weight.shape)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            rows = slice(i, i + (want.shape[2] - 1) * stride[0] + 1, stride[0])
            columns = slice(j, j + (want.shape[3] - 1) * stride[1] + 1, stride[1])
            to_input[:, :, rows, columns] += grad * weight[:, 0, i, j, None, None].astype(np.float64)
            to_weight[:, 0, i, j] = (grad * padded[:, :, rows, columns]).sum((0, 2, 3))
    to_input = to_input[:, :, padding[0] : padding[0] + 11, padding[1] : padding[1] + 13]
    out = np.full((2, 11, 13, channels), np.nan, np.float32)
    at, memory = longs(element_strides(grad)), space_of(kernels, "depthwise_input", shape)
    kernels.call("depthwise_input", grad, at, weight, packed, out, shape, memory)
    np.testing.assert_allclose(out.transpose(0, 3, 1, 2), to_input, rtol=0, atol=tight)
    out, memory = np.full(weight.shape, np.nan, np.float32), space_of(kernels, "depthwise_weight", shape)
    kernels.call("depthwise_weight", x, longs(element_strides(x)), grad, at, out, shape, memory)
    np.testing.assert_allclose(out, to_weight, rtol=0, atol=2 * tolerance(grad[0, 0].size * 2))


# ---- groups --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups, inputs, outputs", [
    (8, 4, 4), (9, 4, 4), (2, 16, 16), (5, 3, 3), (7, 1, 2), (3, 2, 5), (4, 12, 6), (2, 24, 24), (3, 20, 40), (2, 7, 33), (1, 9, 9),
])  # fmt: skip
@pytest.mark.parametrize("kernel, stride, padding, dilation", [
    ((3, 3), (1, 1), (1, 1), (1, 1)), ((1, 1), (1, 1), (0, 0), (1, 1)), ((5, 2), (2, 1), (2, 0), (1, 2)),
    ((3, 3), (1, 2), (3, 2), (2, 1)),
])  # fmt: skip
def test_groups(kernels, groups, inputs, outputs, kernel, stride, padding, dilation):
    x, weight = channels_last(random(2, groups * inputs, 11, 13)), random(groups * outputs, inputs, *kernel, seed=1)
    want = convolve(x, weight, stride, padding, dilation, groups)
    shape = longs([*x.shape, groups * outputs, *kernel, *stride, *padding, *dilation, groups])
    widest = 3 * max(inputs, outputs)
    packed = aligned(kernel[0] * kernel[1] * max(inputs, outputs) * (groups * widest + PANEL))
    out = np.full((2, *want.shape[2:], groups * outputs), np.nan, np.float32)
    kernels.call("grouped", x, longs(element_strides(x)), weight, packed, out, shape, space_of(kernels, "grouped", shape))
    np.testing.assert_allclose(out.transpose(0, 3, 1, 2), want, rtol=0, atol=tolerance(weight[0].size) * 2)

    grad = channels_last(random(*want.shape, seed=2))
    to_input = np.zeros((2, groups * inputs, 11 + 2 * padding[0], 13 + 2 * padding[1]))
    for group, i, j in np.ndindex(groups, *kernel):
        rows = slice(i * dilation[0], i * dilation[0] + (want.shape[2] - 1) * stride[0] + 1, stride[0])
        columns = slice(j * dilation[1], j * dilation[1] + (want.shape[3] - 1) * stride[1] + 1, stride[1])
        read, given = slice(group * inputs, (group + 1) * inputs), slice(group * outputs, (group + 1) * outputs)
        taps = weight[given, :, i, j].astype(np.float64)
        to_input[:, read, rows, columns] += np.einsum("nohw,oc->nchw", grad[:, given].astype(np.float64), taps)
    to_input = to_input[:, :, padding[0] : padding[0] + 11, padding[1] : padding[1] + 13]
    out = np.full((2, 11, 13, groups * inputs), np.nan, np.float32)
    at, memory = longs(element_strides(grad)), space_of(kernels, "grouped_input", shape)
    kernels.call("grouped_input", grad, at, weight, packed, out, shape, memory)
    np.testing.assert_allclose(out.transpose(0, 3, 1, 2), to_input, rtol=0, atol=tolerance(weight[:, 0].size) * 2)
