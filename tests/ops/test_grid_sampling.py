"""Sampling at grids of points, antialiased resizing and fractional pooling."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck

aten = rl.ops.aten


def values(*shape: int) -> rl.Tensor:
    return rl.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape))


@pytest.mark.parametrize("align_corners", (True, False))
@pytest.mark.parametrize("mode", (0, 1, 2))
def test_the_identity_gives_the_image(mode, align_corners):
    image = values(2, 3, 4, 5)
    theta = rl.eye(2, 3, dtype=rl.float64).expand(2, 2, 3)
    grid = aten.affine_grid_generator(theta, [2, 3, 4, 5], align_corners)
    np.testing.assert_allclose(aten.grid_sampler(image, grid, mode, 0, align_corners).numpy(), image.numpy(), atol=1e-12)


def test_points_between_and_outside():
    image = rl.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    grid = rl.tensor([[[[0.0, 0.0], [-1.0, 1.0], [3.0, 0.0]]]])
    assert aten.grid_sampler(image, grid, 0, 0, True).flatten().tolist() == [1.5, 2, 0]
    assert aten.grid_sampler(image, grid, 0, 1, True).flatten().tolist() == [1.5, 2, 2]
    assert aten.grid_sampler(image, grid, 0, 2, True).flatten().tolist() == [1.5, 2, 1]


@pytest.mark.parametrize("padding", (0, 1, 2))
@pytest.mark.parametrize("mode", (0, 2))
def test_gradients(mode, padding):
    image, grid = values(1, 2, 4, 3).requires_grad_(), (values(1, 3, 3, 2) * 0.7).requires_grad_()
    assert gradcheck(lambda i, g: aten.grid_sampler(i, g, mode, padding, False), (image, grid))
    if mode == 0:
        volume, points = values(1, 1, 3, 4, 3).requires_grad_(), (values(1, 2, 2, 2, 3) * 0.7).requires_grad_()
        assert gradcheck(lambda v, p: aten.grid_sampler(v, p, 0, padding, True), (volume, points))


def test_grids_that_do_not_fit():
    image = values(2, 3, 4, 5)
    for grid, message in (
        (values(1, 2, 2, 2), "same batch size"),
        (values(2, 2, 2, 3), "size 2 in last dimension"),
        (values(2, 2, 2, 2).float(), "same dtype"),
        (values(2, 2, 2), "same number of dimensions"),
    ):
        with pytest.raises(RuntimeError, match=message):
            aten.grid_sampler(image, grid, 0, 0, False)


def test_antialiasing_averages_where_the_image_shrinks():
    image = values(1, 2, 8, 8).requires_grad_()
    small = aten._upsample_bilinear2d_aa(image, [4, 4], False)
    flat = aten._upsample_bilinear2d_aa(rl.ones(1, 1, 8, 8), [3, 5], False)
    np.testing.assert_allclose(flat.numpy(), 1, rtol=1e-6)
    weights = np.array([1, 3, 3, 1]) / 8
    want = np.einsum("ncij,i,j->nc", image.detach().numpy()[:, :, 1:5, 1:5], weights, weights)
    np.testing.assert_allclose(small[:, :, 1, 1].detach().numpy(), want)
    same = aten._upsample_bilinear2d_aa.vec(image, None, False, [0.5, 0.5])
    np.testing.assert_array_equal(same.detach().numpy(), small.detach().numpy())
    assert gradcheck(lambda x: aten._upsample_bicubic2d_aa(x, [3, 5], True), (image,))


def test_fractional_pooling():
    image, samples = values(1, 2, 7, 7).requires_grad_(), rl.from_numpy(np.array([[[0.3, 0.6], [0.0, 0.9]]]))
    pooled, places = aten.fractional_max_pool2d(image, [2, 2], [3, 4], samples)
    flat = image.detach().flatten(2)
    np.testing.assert_array_equal(flat.gather(2, places.flatten(2)).numpy(), pooled.detach().flatten(2).numpy())
    assert pooled.shape == (1, 2, 3, 4)
    assert gradcheck(lambda x: aten.fractional_max_pool2d(x, [2, 2], [3, 4], samples)[0], (image,))
    with pytest.raises(RuntimeError, match="too large relative to input size"):
        aten.fractional_max_pool2d(image, [4, 4], [5, 5], samples)
