"""rushlight/image.h and winograd.h against float64, for inputs that lie channels-last and channels-first."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest

from tests.inductor.native.native_build import aligned
from tests.inductor.native.test_products import THREADS, convolve, element_strides, longs, random, tolerance

PANEL = 64  # no panel has more columns
WIDTHS = (1, 5, 7, 13, 29)  # compiled in


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
    width = want.shape[3]
    for fixed in {0, width if width in WIDTHS else 0}:
        got = run(kernels, f"direct_{fixed}", "filter_bytes", weight[0].size, x, weight, stride, padding, dilation)
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


def test_direct_of_a_part_of_an_image(kernels):
    """Neither channels nor columns lie side by side, and channels lie in a wider image."""
    run_direct(kernels, random(2, 6, 20, 30)[:, ::2, 3:17, 2:28:2], random(16, 3, 3, 3, seed=1), padding=(1, 1))
    run_direct(kernels, channels_last(random(2, 9, 16, 15))[:, 2:7, 1:, 2:], random(16, 5, 3, 3, seed=1), padding=(1, 0))


def test_direct_of_many_images(kernels):
    run_direct(kernels, channels_last(random(40, 16, 28, 28)), random(16, 16, 3, 3, seed=1), padding=(1, 1))


def test_direct_keeps_what_is_not_finite_apart(kernels):
    x = channels_last(random(1, 20, 9, 9))
    x[0, 3, 4, 4], x[0, 5, 0, 0] = np.nan, np.inf
    got = run(kernels, "direct_0", "filter_bytes", 180, x, random(16, 20, 3, 3, seed=1), padding=(1, 1))
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
