"""CPU kernels of torchvision's operators on boxes and regions of images.

Align and the position-sensitive forms are linear in the image, and separable: an element of the result is `rows @ image @
columns`, with weights for the image's rows and for its columns. Definitions: RoI pooling of Fast R-CNN (Girshick 2015),
RoIAlign of Mask R-CNN (He et al. 2017), the position-sensitive forms of R-FCN (Dai et al. 2016) and Light-Head R-CNN (Li et al.
2017).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from rushlight.core.dtype import int32, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import operand
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.vision import check_nms, check_regions, check_rois, position_sensitive_channels
from rushlight.ops.registry import cpu

_MAX_SAMPLES = 1 << 20  # limit on samples along one side of a region
_MAX_BOXES, _MAX_PAIRS = 128, 1 << 20  # limits on boxes, and on pairs of boxes, that are compared in one step
Span = tuple[slice, np.ndarray]
"""The rows (or columns) of an image that a region meets, and their weights, [pooled, rows]."""


@cpu("torchvision::nms")
def nms(dets, scores, iou_threshold):
    check_nms(dets, scores)
    boxes, values = operand(dets, dets.dtype), operand(scores, scores.dtype)
    # NaN counts as the greatest score, as in sorting
    order = np.argsort(np.where(np.isnan(values), -np.inf, -values), kind="stable")
    sides = np.ascontiguousarray(boxes[order].T)
    kept = np.empty(len(order), np.int64)
    count = -1 if native.kernels is None else native.kernels.nms(kept, sides, iou_threshold)
    return contiguous(order[kept[:count] if count >= 0 else _suppress(sides, iou_threshold)], int64)


def _suppress(sides: np.ndarray, iou_threshold: float) -> np.ndarray:
    """Return the boxes kept by non-maximum suppression: the indices of boxes, [x1 y1 x2 y2, by falling score], that no earlier
    kept box overlaps."""
    left = np.arange(sides.shape[1])
    kept: list[int] = []
    while left.size:
        head = left[: max(min(_MAX_BOXES, _MAX_PAIRS // left.size), 1)]
        # Compare in the dtype of the threshold, a double in torch too.
        covers = _intersection_over_union(sides[:, head, None], sides[:, left]) > np.float64(iou_threshold)
        alive = np.ones(left.size, np.bool_)
        for index in range(head.size):
            if alive[index]:
                kept.append(head[index])
                alive[index + 1 :] &= ~covers[index, index + 1 :]
        left = left[head.size :][alive[head.size :]]
    return np.array(kept, np.int64)


def _intersection_over_union(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the intersection over union of boxes, [x1 y1 x2 y2, ...]."""
    width = np.minimum(one[2], other[2]) - np.maximum(one[0], other[0])
    height = np.minimum(one[3], other[3]) - np.maximum(one[1], other[1])
    common = np.maximum(width, 0) * np.maximum(height, 0)
    areas = ((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    with np.errstate(divide="ignore", invalid="ignore"):
        return common / (sum(areas) - common)


# Regions as weights of rows and columns


def _regions(name: str, rois: np.ndarray, images: int, rows: Callable, columns: Callable) -> Iterator[tuple]:
    """Yield for each region the number of its image, and the results of `rows` and `columns` for its sides (low, high)."""
    for image, x1, y1, x2, y2 in rois:
        if not 0 <= image < images:
            raise RuntimeError(f"{name}: a region is of image {image:g}, and the batch has {images}")
        yield int(image), rows(y1, y2), columns(x1, x2)


def _trim(weights: np.ndarray) -> Span:
    """Return weights without leading and trailing zero rows."""
    met = np.flatnonzero(weights.any(0))
    span = slice(met[0], met[-1] + 1) if met.size else slice(0, 0)
    return span, np.ascontiguousarray(weights[:, span])


def _aligned_span(scale: float, pooled: int, size: int, sampling_ratio: int, offset: float, smallest: float) -> Callable:
    """Return a function that samples a side of a region: each cell averages evenly spaced points, interpolated between
    pixels."""

    def span(low: np.floating, high: np.floating) -> Span:
        kind = low.dtype.type
        start = low * kind(scale) - kind(offset)
        length = max(high * kind(scale) - kind(offset) - start, kind(smallest))
        cell = length / kind(pooled)
        weights = np.zeros((pooled, size), low.dtype)
        if not np.isfinite(cell) or not size:
            return _trim(weights)
        samples = sampling_ratio if sampling_ratio > 0 else max(int(np.ceil(cell)), 0)
        if samples * pooled > _MAX_SAMPLES:
            raise RuntimeError(f"a region of {float(length):g} rows or columns is too large to be sampled")
        _add_samples(weights, start, cell, samples)
        return _trim(weights)

    return span


def _add_samples(weights: np.ndarray, start: np.floating, cell: np.floating, samples: int) -> None:
    """Add the weights of the sampled points: each is split between the pixels on both sides."""
    pooled, size = weights.shape
    kind = weights.dtype.type
    cells = np.repeat(np.arange(pooled), samples)
    inner = np.tile(np.arange(samples, dtype=weights.dtype) + kind(0.5), pooled)
    at = start + cells.astype(weights.dtype) * cell + inner * cell / kind(max(samples, 1))
    inside = (at >= -1) & (at <= size)
    cells, at = cells[inside], np.maximum(at[inside], 0)
    low = np.minimum(at.astype(np.int64), size - 1)
    share = np.where(low == size - 1, kind(0), at - low.astype(weights.dtype))
    np.add.at(weights, (cells, low), (1 - share) / kind(max(samples, 1)))
    np.add.at(weights, (cells, np.minimum(low + 1, size - 1)), share / kind(max(samples, 1)))


def _bins(low: int, high: int, pooled: int, limit: int, kind: np.dtype) -> list[tuple[int, int]]:
    """Return the rows of each bin of a region whose side is [low, high), below `limit`; bins may overlap by a row."""
    cell = kind.type(high - low) / kind.type(pooled)
    ends = [(int(np.floor(index * cell)) + low, int(np.ceil((index + 1) * cell)) + low) for index in range(pooled)]
    return [(min(max(first, 0), limit), min(max(last, 0), limit)) for first, last in ends]


def _round_to_pixel(value: np.floating, scale: float) -> int:
    """Round to nearest, halves away from zero, clamped to possible coordinates of an image."""
    scaled = float(value * value.dtype.type(scale))
    if not np.isfinite(scaled):
        raise RuntimeError(f"a region has the coordinate {float(value):g}")
    return int(np.clip(np.trunc(scaled + np.copysign(0.5, scaled)), -(1 << 30), 1 << 30))


def _pooled_span(scale: float, pooled: int, size: int, limit: int) -> Callable:
    """Return a function that splits a side of a region into bins, each of which averages its rows below `limit`."""

    def span(low: np.floating, high: np.floating) -> Span:
        first = _round_to_pixel(low, scale)
        weights = np.zeros((pooled, size), low.dtype)
        bins = _bins(first, max(_round_to_pixel(high, scale), first + 1), pooled, limit, low.dtype)
        for index, (start, end) in enumerate(bins):
            if end > start:
                weights[index, start:end] = 1 / low.dtype.type(end - start)
        return _trim(weights)

    return span


# Align


def _align_spans(scale, pooled_height, pooled_width, height, width, sampling_ratio, aligned) -> tuple[Callable, Callable]:
    offset, smallest = (0.5, -np.inf) if aligned else (0.0, 1.0)
    return (_aligned_span(scale, pooled_height, height, sampling_ratio, offset, smallest),
            _aligned_span(scale, pooled_width, width, sampling_ratio, offset, smallest))  # fmt: skip


@cpu("torchvision::roi_align")
def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    check_regions("roi_align", input, rois, pooled_height, pooled_width)
    images, boxes = operand(input, input.dtype), operand(rois, rois.dtype)
    spans = _align_spans(spatial_scale, pooled_height, pooled_width, *images.shape[2:], sampling_ratio, aligned)
    out = np.zeros((len(boxes), images.shape[1], pooled_height, pooled_width), images.dtype)
    if native.kernels is not None:
        images, boxes = native.contiguous(images), native.contiguous(boxes)
        if native.kernels.roi_align(out, images, boxes, spatial_scale, sampling_ratio, aligned):
            return contiguous(out, input.dtype)
    for index, (image, (rows, down), (columns, across)) in enumerate(_regions("roi_align", boxes, len(images), *spans)):
        np.matmul(np.matmul(down, images[image][:, rows, columns]), across.T, out=out[index])
    return contiguous(out, input.dtype)


@cpu("torchvision::_roi_align_backward")
def roi_align_backward(
    grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width, sampling_ratio, aligned
):
    check_rois("_roi_align_backward", rois, pooled_height, pooled_width)
    grads, boxes = operand(grad, grad.dtype), operand(rois, rois.dtype)
    spans = _align_spans(spatial_scale, pooled_height, pooled_width, height, width, sampling_ratio, aligned)
    out = np.zeros((batch_size, channels, height, width), grads.dtype)
    regions = _regions("_roi_align_backward", boxes, batch_size, *spans)
    for each, (image, (rows, down), (columns, across)) in zip(grads, regions, strict=True):
        out[image][:, rows, columns] += np.matmul(np.matmul(down.T, each), across)
    return contiguous(out, grad.dtype)


# Position-sensitive forms: each position of the result has its own channels


def _position_sensitive(name: str, input: Tensor, rois: Tensor, height: int, width: int, spans: Callable) -> tuple:
    check_regions(name, input, rois, height, width)
    channels = position_sensitive_channels(name, input, height, width)
    images, boxes = operand(input, input.dtype), operand(rois, rois.dtype)
    grouped = images.reshape(len(images), channels, height, width, *images.shape[2:])
    out = np.zeros((len(boxes), channels, height, width), images.dtype)
    regions = _regions(name, boxes, len(images), *spans(*images.shape[2:]))
    for index, (image, (rows, down), (columns, across)) in enumerate(regions):
        out[index] = np.einsum("ph,cpqhw,qw->cpq", down, grouped[image][..., rows, columns], across)
    mapping = np.broadcast_to(np.arange(channels * height * width).reshape(out.shape[1:]), out.shape)
    return contiguous(out, input.dtype), contiguous(mapping.astype(np.int32), int32)


def _position_sensitive_backward(
    name: str, grad: Tensor, rois: Tensor, height: int, width: int, spans: Callable, sizes: tuple[int, int, int, int]
) -> Tensor:
    check_rois(name, rois, height, width)
    grads, boxes = operand(grad, grad.dtype), operand(rois, rois.dtype)
    out = np.zeros((sizes[0], grads.shape[1], height, width, *sizes[2:]), grads.dtype)
    regions = _regions(name, boxes, sizes[0], *spans(*sizes[2:]))
    for each, (image, (rows, down), (columns, across)) in zip(grads, regions, strict=True):
        out[image][..., rows, columns] += np.einsum("ph,cpq,qw->cpqhw", down, each, across)
    return contiguous(out.reshape(sizes), grad.dtype)


def _ps_align_spans(scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int) -> Callable:
    return lambda height, width: _align_spans(scale, pooled_height, pooled_width, height, width, sampling_ratio, True)


def _ps_pool_spans(scale: float, pooled_height: int, pooled_width: int, unread: int) -> Callable:
    return lambda height, width: (_pooled_span(scale, pooled_height, height, height - unread),
                                  _pooled_span(scale, pooled_width, width, width - unread))  # fmt: skip


@cpu("torchvision::ps_roi_align")
def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    spans = _ps_align_spans(spatial_scale, pooled_height, pooled_width, sampling_ratio)
    return _position_sensitive("ps_roi_align", input, rois, pooled_height, pooled_width, spans)


@cpu("torchvision::_ps_roi_align_backward")
def ps_roi_align_backward(
    grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, sampling_ratio, batch_size, channels, height, width
):
    spans = _ps_align_spans(spatial_scale, pooled_height, pooled_width, sampling_ratio)
    sizes = (batch_size, channels, height, width)
    return _position_sensitive_backward("_ps_roi_align_backward", grad, rois, pooled_height, pooled_width, spans, sizes)


@cpu("torchvision::ps_roi_pool")
def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    # Here, regions that reach past the image are cut before its last row and column; in the derivative, after them.
    spans = _ps_pool_spans(spatial_scale, pooled_height, pooled_width, 1)
    return _position_sensitive("ps_roi_pool", input, rois, pooled_height, pooled_width, spans)


@cpu("torchvision::_ps_roi_pool_backward")
def ps_roi_pool_backward(
    grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    spans = _ps_pool_spans(spatial_scale, pooled_height, pooled_width, 0)
    sizes = (batch_size, channels, height, width)
    return _position_sensitive_backward("_ps_roi_pool_backward", grad, rois, pooled_height, pooled_width, spans, sizes)


# Max pooling of regions


def _split_span(scale: float, pooled: int, size: int) -> Callable:
    """Return a function that splits a side of a region into bins, the last pixel included."""

    def span(low: np.floating, high: np.floating) -> list[tuple[int, int]]:
        first = _round_to_pixel(low, scale)
        return _bins(first, max(_round_to_pixel(high, scale), first) + 1, pooled, size, low.dtype)

    return span


@cpu("torchvision::roi_pool")
def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    check_regions("roi_pool", input, rois, pooled_height, pooled_width)
    images, boxes = operand(input, input.dtype), operand(rois, rois.dtype)
    height, width = images.shape[2:]
    out = np.zeros((len(boxes), images.shape[1], pooled_height, pooled_width), images.dtype)
    positions = np.full(out.shape, -1, np.int32)
    spans = _split_span(spatial_scale, pooled_height, height), _split_span(spatial_scale, pooled_width, width)
    for index, (image, rows, columns) in enumerate(_regions("roi_pool", boxes, len(images), *spans)):
        for (row, (top, bottom)), (column, (left, right)) in product(enumerate(rows), enumerate(columns)):
            if bottom > top and right > left:
                part = images[image][:, top:bottom, left:right].reshape(images.shape[1], -1)
                where = part.argmax(1)
                out[index, :, row, column] = part[np.arange(len(part)), where]
                below, beside = np.divmod(where, right - left)
                positions[index, :, row, column] = (below + top) * width + beside + left
    return contiguous(out, input.dtype), contiguous(positions, int32)


@cpu("torchvision::_roi_pool_backward")
def roi_pool_backward(
    grad, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    check_rois("_roi_pool_backward", rois, pooled_height, pooled_width)
    grads, positions = operand(grad, grad.dtype), argmax._impl.array
    if positions.shape != grads.shape or (positions.size and not -1 <= positions.min() <= positions.max() < height * width):
        raise RuntimeError("_roi_pool_backward: expected argmax to hold a place in the image for each element of grad, or -1")
    image = operand(rois, rois.dtype)[:, 0].astype(np.int64)
    if image.size and not 0 <= image.min() <= image.max() < batch_size:
        raise RuntimeError(f"_roi_pool_backward: a region is of an image outside the batch of {batch_size}")
    out = np.zeros((batch_size, channels, height * width), grads.dtype)
    region, channel, _, _ = found = np.nonzero(positions >= 0)
    np.add.at(out, (image[region], channel, positions[found]), grads[found])
    return contiguous(out.reshape(batch_size, channels, height, width), grad.dtype)
