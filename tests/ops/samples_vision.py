"""Sample calls of torchvision's operators on boxes and regions of images."""

from __future__ import annotations

import numpy as np

import rushlight as rl
from tests.ops.samples import group, real


def boxes() -> rl.Tensor:
    """Boxes that overlap one another."""
    corners = np.abs(real(6, 2).numpy()) * 3
    return rl.tensor(np.concatenate([corners, corners + 1 + np.abs(real(6, 2).numpy()) * 4], 1))


def regions() -> rl.Tensor:
    """Regions of two images of 7 x 8, some of which end outside."""
    return rl.tensor(np.array([[0, 0.6, 1.3, 5.2, 5.7], [1, 2.2, 0.4, 9.4, 8.1], [1, -1.3, 2.1, 3.3, 4.2]]))


@group
def _boxes():
    yield "torchvision::nms", boxes(), real(6), 0.3, "data"
    yield "torchvision::box_iou_rotated", real(3, 5), real(4, 5)


@group
def _align():
    for ratio, aligned in ((2, True), (-1, False)):
        arguments = (regions(), 0.75, 2, 3)
        yield "torchvision::roi_align", real(2, 3, 7, 8), *arguments, ratio, aligned
        yield "torchvision::_roi_align_backward", real(3, 3, 2, 3), *arguments, 2, 3, 7, 8, ratio, aligned
        image = real(2, 12, 7, 8)
        yield "torchvision::ps_roi_align", image, *arguments, ratio
        _, mapping = rl.ops.torchvision.ps_roi_align(image, *arguments, ratio)
        yield "torchvision::_ps_roi_align_backward", real(3, 2, 2, 3), regions(), mapping, 0.75, 2, 3, ratio, 2, 12, 7, 8


@group
def _pool():
    inside = rl.tensor(np.array([[0, 0.6, 1.3, 5.2, 5.7], [1, 2.2, 0.4, 6.4, 5.1]]))
    for name, channels in (("roi_pool", 3), ("ps_roi_pool", 12)):
        image = real(2, channels, 7, 8)
        yield f"torchvision::{name}", image, inside, 0.75, 2, 3
        result, places = getattr(rl.ops.torchvision, name)(image, inside, 0.75, 2, 3)
        yield f"torchvision::_{name}_backward", real(*result.shape), inside, places, 0.75, 2, 3, 2, channels, 7, 8
