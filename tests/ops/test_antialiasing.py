"""Antialiased resizing against its definition: each output is the mean of what its filter covers, one element at a time."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import gradcheck
from rushlight.nn import functional as F

FILTERS = {
    "bilinear": (1, lambda x: max(1 - x, 0)),
    "bicubic": (2, lambda x: 1.5 * x**3 - 2.5 * x**2 + 1 if x < 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0),
}


def matrix(size: int, output: int, mode: str) -> np.ndarray:
    """The weights of one dimension, (output, size)."""
    radius, curve = FILTERS[mode]
    ratio = size / output
    stretch = max(ratio, 1.0)
    made = np.zeros((output, size))
    for row in range(output):
        centre = (row + 0.5) * ratio
        first, last = max(int(centre - radius * stretch + 0.5), 0), min(int(centre + radius * stretch + 0.5), size)
        for column in range(first, last):
            made[row, column] = curve(abs(column + 0.5 - centre) / stretch)
    return made / made.sum(1, keepdims=True)


@pytest.mark.parametrize("mode", FILTERS)
@pytest.mark.parametrize("sizes, output", [((150, 9), (130, 14)), ((7, 200), (200, 70)), ((3, 300), (2, 65)), ((1, 1), (4, 3))])
def test_means_under_a_filter(mode, sizes, output):
    image = np.random.default_rng(0).standard_normal((2, 3, *sizes))
    found = F.interpolate(torch.tensor(image), output, mode=mode, antialias=True)
    expected = matrix(sizes[0], output[0], mode) @ image @ matrix(sizes[1], output[1], mode).T
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_gradient_over_several_blocks():
    image = torch.randn(1, 1, 3, 100, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: F.interpolate(x, (2, 70), mode="bilinear", antialias=True), (image,))


@pytest.mark.parametrize("mode", FILTERS)
@pytest.mark.parametrize("options", [{"size": (6, 7)}, {"size": (6, 7), "align_corners": True}, {"scale_factor": 0.5}], ids=str)
def test_open_sizes_are_captured_once(mode, options):
    def resize(image):
        return F.interpolate(image, mode=mode, antialias=True, **options)

    graphs = []
    compiled = torch.compile(resize, fullgraph=True, backend=lambda module, inputs: graphs.append(module) or module.forward)
    for sizes in ((8, 9), (9, 11), (130, 17), (5, 8)):
        image = torch.randn(1, 3, *sizes, requires_grad=True)
        found, expected = compiled(image), resize(image)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(*[torch.autograd.grad(made.square().sum(), image)[0] for made in (found, expected)])
    assert len(graphs) == 2


@pytest.mark.parametrize("scale", [0.5, 1.25, 2, 0.7])
def test_bytes_and_open_sizes(scale):
    compiled = torch.compile(lambda image: F.interpolate(image, scale_factor=scale, mode="bilinear", antialias=True))
    for size in (8, 9, 31):
        image = torch.randint(0, 256, (1, 3, size, size + 2), dtype=torch.uint8)
        assert torch.equal(compiled(image), F.interpolate(image, scale_factor=scale, mode="bilinear", antialias=True))
