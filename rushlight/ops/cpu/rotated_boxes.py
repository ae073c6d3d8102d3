"""torchvision's box_iou_rotated: the overlap of rotated boxes. Each box is clipped by the other's sides, one by one (Sutherland
and Hodgman 1974), for all pairs at once."""

from __future__ import annotations

import numpy as np

from rushlight.ops.cpu.common import operand
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.vision import check_rotated
from rushlight.ops.registry import cpu

_MAX_CORNERS = 8  # an intersection of two quadrangles has at most 8 corners


@cpu("torchvision::box_iou_rotated")
def box_iou_rotated(boxes1, boxes2):
    check_rotated(boxes1, boxes2)
    first, second = (operand(boxes, boxes.dtype).astype(np.float64) for boxes in (boxes1, boxes2))
    pairs = (len(first), len(second))
    ones = np.repeat(first, pairs[1], axis=0)
    others = np.tile(second, (pairs[0], 1))
    # Move each pair to the origin, because coordinates far from it would lose precision.
    middle = (ones[:, :2] + others[:, :2]) / 2
    common = _common_area(_corners(ones, middle), _corners(others, middle))
    one, other = (boxes[:, 2] * boxes[:, 3] for boxes in (ones, others))
    union = one + other - common
    with np.errstate(divide="ignore", invalid="ignore"):
        overlap = np.where((one < 1e-14) | (other < 1e-14), 0.0, common / union)
    return contiguous(overlap.reshape(pairs).astype(np.dtype(boxes1.dtype.compute)), boxes1.dtype)


def _corners(boxes: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Return the corners [pairs, 4, 2] of boxes (centre, sizes, degrees), counter-clockwise, relative to `middle`."""
    angle = np.deg2rad(boxes[:, 4])
    across = np.stack([np.cos(angle), -np.sin(angle)], 1) * boxes[:, 2:3] / 2
    down = np.stack([np.sin(angle), np.cos(angle)], 1) * boxes[:, 3:4] / 2
    centre = boxes[:, :2] - middle
    return np.stack([centre - across - down, centre + across - down, centre + across + down, centre - across + down], 1)


def _cross(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]


def _common_area(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the intersection area of each pair of quadrangles."""
    corners = np.zeros((len(ones), _MAX_CORNERS, 2))
    corners[:, :4] = ones
    counts = np.full(len(ones), 4)
    for side in range(4):
        corners, counts = _clip(corners, counts, others[:, side], others[:, (side + 1) % 4])
    following = np.take_along_axis(corners, _next_corner(counts)[..., None], 1)
    terms = np.where(np.arange(_MAX_CORNERS) < counts[:, None], _cross(corners, following), 0)
    return np.abs(terms.sum(1)) / 2


def _next_corner(counts: np.ndarray) -> np.ndarray:
    """Return the index of each corner's successor."""
    index = np.arange(_MAX_CORNERS)
    return np.where(index + 1 < counts[:, None], np.minimum(index + 1, _MAX_CORNERS - 1), 0)


def _clip(corners: np.ndarray, counts: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Clip polygons at a line, keeping its left side: inner corners stay, and sides that cross the line get a new corner."""
    along = (end - start)[:, None]
    height = _cross(along, corners - start[:, None])
    after = _next_corner(counts)
    next_corner, next_height = np.take_along_axis(corners, after[..., None], 1), np.take_along_axis(height, after, 1)
    exists = np.arange(_MAX_CORNERS) < counts[:, None]
    inside = exists & (height >= 0)
    crosses = exists & ((height >= 0) != (next_height >= 0))
    share = np.divide(height, height - next_height, out=np.zeros_like(height), where=crosses)
    met = corners + (next_corner - corners) * share[..., None]
    # Each corner yields up to two: itself, and the crossing point after it.
    found = np.stack([corners, met], 2).reshape(len(corners), 2 * _MAX_CORNERS, 2)
    kept = np.stack([inside, crosses], 2).reshape(len(corners), 2 * _MAX_CORNERS)
    order = np.argsort(~kept, axis=1, kind="stable")[:, :_MAX_CORNERS]
    return np.take_along_axis(found, order[..., None], 1), np.minimum(kept.sum(1), _MAX_CORNERS)
