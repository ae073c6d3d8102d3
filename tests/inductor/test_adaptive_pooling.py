"""Adaptive pooling and its gradients as native code agree with eager's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.test_pooling import check, image

SIZES = [((10, 10), (7, 7)), ((32, 32), (7, 5)), ((8, 6), (4, 3)), ((5, 170), (9, 1)), ((3, 4), (5, 4)), ((150, 9), (4, 9))]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["first", "last"])
@pytest.mark.parametrize("size, output_size", SIZES, ids=str)
def test_images(size, output_size, layout):
    x = image(2, 20, *size, ties=True).contiguous(memory_format=layout)
    check(lambda x: F.adaptive_max_pool2d(x, output_size, return_indices=True), x)
    check(lambda x: F.adaptive_avg_pool2d(x * 0.7, output_size), x)


@pytest.mark.parametrize("output_size", [(7, 7), (3, 12)], ids=str)
def test_the_place_of_values_without_an_order(output_size):
    x = image(2, 17, 10, 16, ties=True)
    x[0, 0, 1:6, 2:9] = x[1, 1, 9, 15] = x[1, 2, 4] = float("nan")
    x[1, 3] = float("-inf")
    for layout in (torch.contiguous_format, torch.channels_last):
        x = x.contiguous(memory_format=layout)
        check(lambda x: F.adaptive_max_pool2d(x, output_size, return_indices=True), x)
        check(lambda x: F.adaptive_avg_pool2d(x, output_size), x)


def test_one_and_three_dimensions():
    check(lambda x: F.adaptive_avg_pool1d(x, 7) + F.adaptive_max_pool1d(x, 7), image(2, 3, 100))
    check(lambda x: F.adaptive_avg_pool3d(x, (3, 7, 4)) + F.adaptive_max_pool3d(x, (3, 7, 4)), image(2, 3, 8, 10, 6))
    check(lambda x: F.adaptive_max_pool3d(x, (2, 3, 5), return_indices=True), image(3, 8, 10, 6, ties=True))


def test_other_types():
    check(lambda x: F.adaptive_avg_pool2d(x.double(), 7) + F.adaptive_max_pool2d(x.double(), 7), image(2, 3, 10, 12))
    x = image(2, 3, 10, 12).bfloat16()
    for function in (lambda x: F.adaptive_avg_pool2d(x, 7), lambda x: F.adaptive_max_pool2d(x, 7)):
        found = torch.compile(function, fullgraph=True)(x)
        np.testing.assert_allclose(found.float().numpy(), function(x.float()).numpy(), rtol=1e-2, atol=1e-2)


def test_open_sizes():
    for size in (8, 11):
        check(lambda x: F.adaptive_avg_pool2d(x, 5) + F.adaptive_max_pool2d(x, 5), image(size, 2, size + 3, 9), dynamic=True)


def test_gradients_of_open_sizes():
    def gradient(pool, x):
        return torch.autograd.grad(pool(x).square().sum(), x)

    compiled = torch.compile(lambda x: F.adaptive_avg_pool2d(x, 2), fullgraph=True, dynamic=True)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for size in ((8, 8), (7, 9), (4, 5)):
            x = image(2, 3, *size).requires_grad_()
            torch.testing.assert_close(gradient(compiled, x), gradient(lambda x: F.adaptive_avg_pool2d(x, 2), x))
    assert not warned


@pytest.mark.parametrize("pool", [F.adaptive_avg_pool2d, F.adaptive_max_pool2d], ids=["mean", "maximum"])
def test_open_sizes_of_windows_that_are_not_known(pool):
    """Such a pool sends nothing to the interpreter."""
    compiled = torch.compile(lambda x: pool(x.relu(), (3, 2)).sin(), dynamic=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in ((7, 8), (9, 10), (12, 5)):
            x = image(2, 3, *size)
            np.testing.assert_allclose(compiled(x).numpy(), pool(x.relu(), (3, 2)).sin().numpy(), rtol=1e-5, atol=1e-6)
    assert not [warning for warning in caught if "interpreter" in str(warning.message)]
