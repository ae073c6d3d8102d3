"""torchvision's operators on boxes and regions of images, against their definitions, one element after the other."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import gradcheck

vision = torch.ops.torchvision


def kept_boxes(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> list[int]:
    """Non-maximum suppression as it is defined: by score, all boxes that no kept one overlaps."""
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable"):
        if all(overlap(boxes[index], boxes[each]) <= threshold for each in kept):
            kept.append(int(index))
    return kept


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    common = max(width, 0) * max(height, 0)
    return common / ((one[2] - one[0]) * (one[3] - one[1]) + (other[2] - other[0]) * (other[3] - other[1]) - common)


@pytest.mark.parametrize("seed", range(4))
def test_nms_keeps_what_no_better_box_overlaps(seed):
    numbers = np.random.default_rng(seed)
    corners = numbers.random((40, 2)) * 10
    boxes, scores = np.concatenate([corners, corners + 1 + numbers.random((40, 2)) * 5], 1), numbers.random(40).round(1)
    found = vision.nms(torch.tensor(boxes), torch.tensor(scores), 0.3)
    assert found.dtype is torch.int64 and found.tolist() == kept_boxes(boxes, scores, 0.3)
    assert vision.nms(torch.zeros(0, 4), torch.zeros(0), 0.3).shape == (0,)


def pixel(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """All channels between pixels, as regions are aligned: nothing beyond one pixel outside, the border within it."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    low_y, low_x = int(y), int(x)
    high_y, high_x = min(low_y + 1, height - 1), min(low_x + 1, width - 1)
    upper = image[:, low_y, low_x] * (1 - x + low_x) + image[:, low_y, high_x] * (x - low_x)
    lower = image[:, high_y, low_x] * (1 - x + low_x) + image[:, high_y, high_x] * (x - low_x)
    return upper * (1 - y + low_y) + lower * (y - low_y)


def sides(region: np.ndarray, scale: float, pooled: tuple[int, int], aligned: bool):
    """The first point of a region and the sizes of a cell."""
    x, y, end_x, end_y = region[1:] * scale - (0.5 if aligned else 0)
    least = -math.inf if aligned else 1.0
    return y, x, max(end_y - y, least) / pooled[0], max(end_x - x, least) / pooled[1]


def cell_mean(image: np.ndarray, region: np.ndarray, scale: float, pooled, ratio: int, aligned: bool, row: int, column: int):
    y, x, high, wide = sides(region, scale, pooled, aligned)
    down, across = (ratio, ratio) if ratio > 0 else (math.ceil(high), math.ceil(wide))
    points = [(y + row * high + (i + 0.5) * high / down, x + column * wide + (j + 0.5) * wide / across)
              for i in range(down) for j in range(across)]  # fmt: skip
    return sum((pixel(image, *point) for point in points), np.zeros(len(image))) / max(len(points), 1)


REGIONS = np.array([[0, 0.6, 1.3, 5.2, 5.7], [1, 2.2, 0.4, 12.4, 9.1], [1, -4.3, 2.1, 3.3, 4.2], [0, 3, 3, 3, 3]])


@pytest.mark.parametrize("ratio", [2, -1])
@pytest.mark.parametrize("aligned", [True, False])
def test_roi_align_takes_means_of_points_between_pixels(ratio, aligned):
    image = np.random.default_rng(0).standard_normal((2, 3, 6, 7))
    found = vision.roi_align(torch.tensor(image), torch.tensor(REGIONS), 0.7, 2, 3, ratio, aligned).numpy()
    for index, region in enumerate(REGIONS):
        for row in range(2):
            for column in range(3):
                expected = cell_mean(image[int(region[0])], region, 0.7, (2, 3), ratio, aligned, row, column)
                np.testing.assert_allclose(found[index, :, row, column], expected, atol=1e-12)


def test_position_sensitive_align_reads_channels_of_its_place():
    image = np.random.default_rng(0).standard_normal((2, 12, 6, 7))
    found, mapping = vision.ps_roi_align(torch.tensor(image), torch.tensor(REGIONS), 0.7, 2, 3, 2)
    for index, region in enumerate(REGIONS):
        for row in range(2):
            for column in range(3):
                means = cell_mean(image[int(region[0])], region, 0.7, (2, 3), 2, True, row, column)
                np.testing.assert_allclose(found[index, :, row, column].numpy(), means[row * 3 + column :: 6], atol=1e-12)
    assert mapping.dtype is torch.int32 and mapping[0, :, 1, 2].tolist() == [5, 11]


def test_roi_pool_takes_the_largest_of_each_bin():
    image = torch.arange(2 * 5 * 6, dtype=torch.float32).reshape(1, 2, 5, 6)
    found, places = vision.roi_pool(image, torch.tensor([[0.0, 1, 1, 4, 3], [0, 9, 9, 12, 12]]), 1.0, 2, 2)
    assert found[0, 0].tolist() == [[14, 16], [20, 22]] and places[0, 1].tolist() == [[14, 16], [20, 22]]
    assert found[1].abs().sum().item() == 0 and (places[1] == -1).all().item()  # outside the image there is nothing
    with pytest.raises(RuntimeError, match="a region is of image 1, and the batch has 1"):
        vision.roi_pool(image, torch.tensor([[1.0, 1, 1, 4, 3]]), 1.0, 2, 2)


def test_gradients_of_regions():
    image = torch.randn(2, 12, 6, 7, dtype=torch.float64, requires_grad=True)
    inside = torch.tensor(np.array([[0, 0.6, 1.3, 5.2, 5.7], [1, 2.2, 0.4, 6.4, 5.1]]))
    assert gradcheck(lambda x: vision.roi_align(x, inside, 0.7, 2, 3, -1, True), (image,))
    assert gradcheck(lambda x: vision.roi_pool(x, inside, 0.7, 2, 3)[0], (image,))
    assert gradcheck(lambda x: vision.ps_roi_align(x, inside, 0.7, 2, 3, 2)[0], (image,))
    assert gradcheck(lambda x: vision.ps_roi_pool(x, inside, 0.7, 2, 3)[0], (image,))


def deform(image, weight, offset, mask, bias):
    return vision.deform_conv2d(image, weight, offset, mask, bias, 1, 1, 1, 1, 1, 1, 2, 1, True)


def deformable(dtype=torch.float64) -> list[torch.Tensor]:
    torch.manual_seed(0)
    sizes = [(1, 4, 4, 5), (2, 2, 3, 3), (1, 18, 4, 5), (1, 9, 4, 5), (2,)]
    return [torch.randn(*each, dtype=dtype, requires_grad=True) for each in sizes]


def test_deformable_convolution():
    image, weight, offset, mask, bias = deformable()
    plain = torch.nn.functional.conv2d(image, weight, bias, padding=1, groups=2)
    found = deform(image, weight, torch.zeros_like(offset), torch.ones_like(mask), bias)
    torch.testing.assert_close(found, plain)
    moved = torch.zeros_like(offset)
    moved[:, 1::2] = 1.0  # each point one pixel to the right
    shifted = torch.nn.functional.pad(image, (0, 1))[..., 1:]
    found = deform(image, weight, moved, torch.ones_like(mask), bias)
    # The column before the first is in the image once moved; everywhere else it is the convolution of the moved image.
    expected = torch.nn.functional.conv2d(torch.nn.functional.pad(image, (0, 2, 1, 1)), weight, bias, groups=2)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found[..., 1:], torch.nn.functional.conv2d(shifted, weight, bias, padding=1, groups=2)[..., 1:])
    assert gradcheck(deform, (image, weight, offset, mask, bias))
    with pytest.raises(RuntimeError, match=r"expected offset of shape \[1, 18, 4, 5\]"):
        deform(image, weight, offset[:, :4], mask, bias)


def test_overlap_of_rotated_boxes():
    square = torch.tensor([[5.0, 5, 2, 2, 0]])
    others = torch.tensor([[5.0, 5, 2, 2, 90], [5, 5, 2, 2, 45], [6, 5, 2, 2, 0], [9, 9, 2, 2, 30], [5, 5, 0, 2, 0]])
    octagon = 8 * (math.sqrt(2) - 1)
    expected = [1.0, octagon / (8 - octagon), 1 / 3, 0.0, 0.0]
    np.testing.assert_allclose(vision.box_iou_rotated(square, others)[0].numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("call, message", [
    (lambda: vision.nms(torch.zeros(3, 5), torch.zeros(3), 0.5), "boxes should be a 2d tensor with 4 elements"),
    (lambda: vision.nms(torch.zeros(3, 4), torch.zeros(2), 0.5), "same number of elements in dimension 0, got 3 and 2"),
    (lambda: vision.roi_align(torch.zeros(1, 1, 4, 4), torch.zeros(2, 4), 1.0, 2, 2, 2, True), r"Tensor\[K, 5\]"),
    (lambda: vision.roi_align(torch.zeros(1, 1, 4, 4), torch.tensor([[0.0, 0, 0, 1e30, 1]]), 1.0, 2, 2, -1, True), "too large"),
    (lambda: vision.ps_roi_pool(torch.zeros(1, 5, 4, 4), torch.zeros(2, 5), 1.0, 2, 2), "multiple of pooling height"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_regions_that_are_no_numbers_give_nothing():
    regions = torch.tensor([[0.0, math.nan, 0, 1, 1], [0, 0, 0, math.inf, 1]])
    assert vision.roi_align(torch.ones(1, 1, 4, 4), regions, 1.0, 2, 2, 2, True).abs().sum().item() == 0
