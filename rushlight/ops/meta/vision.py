"""Checks and Meta rules of torchvision's operators on regions of images.

A region is a row of `rois`, float [regions, 5]: its image's index in the batch, then x1, y1, x2, y2 before `spatial_scale`.
Results are [regions, channels, pooled_height, pooled_width].
"""

from __future__ import annotations

from rushlight.core.dtype import int32
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentShapeError
from rushlight.ops.meta.checks import require_floating, require_same_dtype
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_nms(dets: Tensor, scores: Tensor) -> None:
    """Raise RuntimeError unless there are boxes [N, 4] and scores [N] of one dtype."""
    if dets.dim() != 2 or dets.shape[1] != 4:
        raise RuntimeError(f"boxes should be a 2d tensor with 4 elements in dimension 1, got shape {list(dets.shape)}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}d")
    if dets.shape[0] != scores.shape[0]:
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{dets.shape[0]} and {scores.shape[0]}"
        )
    require_floating("nms", dets)
    require_same_dtype("nms", dets.dtype, scores=scores)


@meta("torchvision::nms")
def nms(dets, scores, iou_threshold):
    check_nms(dets, scores)
    raise DataDependentShapeError("nms")


def check_rotated(boxes1: Tensor, boxes2: Tensor) -> None:
    """Raise RuntimeError unless both are boxes [N, 5] of one floating dtype: centre, sizes, and degrees counter-clockwise."""
    for boxes in (boxes1, boxes2):
        if boxes.dim() != 2 or boxes.shape[1] != 5:
            raise RuntimeError(f"box_iou_rotated: expected boxes of shape [N, 5], but got {list(boxes.shape)}")
    require_floating("box_iou_rotated", boxes1)
    require_same_dtype("box_iou_rotated", boxes1.dtype, boxes2=boxes2)


@meta("torchvision::box_iou_rotated")
def box_iou_rotated(boxes1, boxes2):
    check_rotated(boxes1, boxes2)
    return empty((boxes1.shape[0], boxes2.shape[0]), boxes1.dtype)


def check_regions(name: str, input: Tensor, rois: Tensor, height: int, width: int) -> None:
    """Raise RuntimeError unless images, regions and the size of the result fit together."""
    if input.dim() != 4:
        raise RuntimeError(f"{name}: expected input of 4 dimensions, but got shape {list(input.shape)}")
    require_floating(name, input)
    check_rois(name, rois, height, width)
    require_same_dtype(name, input.dtype, rois=rois)


def check_rois(name: str, rois: Tensor, height: int, width: int) -> None:
    """Raise RuntimeError unless regions are [K, 5] and the result is not empty."""
    if rois.dim() != 2 or rois.shape[1] != 5:
        raise RuntimeError(f"{name}: Tensor rois should have shape as Tensor[K, 5], but got shape {list(rois.shape)}")
    if height <= 0 or width <= 0:
        raise RuntimeError(f"{name}: expected a positive size of the result, but got {height} x {width}")


def position_sensitive_channels(name: str, input: Tensor, height: int, width: int) -> int:
    """Return the result's channels; RuntimeError unless the input has one channel for each of them at each output position."""
    if input.shape[1] % (height * width):
        raise RuntimeError(
            f"{name}: input channels must be a multiple of pooling height * pooling width, "
            f"but got {input.shape[1]} channels for {height} x {width}"
        )
    return input.shape[1] // (height * width)


@meta("torchvision::roi_align")
def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    check_regions("roi_align", input, rois, pooled_height, pooled_width)
    return empty((rois.shape[0], input.shape[1], pooled_height, pooled_width), input.dtype)


@meta("torchvision::roi_pool")
def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    check_regions("roi_pool", input, rois, pooled_height, pooled_width)
    sizes = (rois.shape[0], input.shape[1], pooled_height, pooled_width)
    return empty(sizes, input.dtype), empty(sizes, int32)


def _position_sensitive(name: str, input: Tensor, rois: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    check_regions(name, input, rois, height, width)
    sizes = (rois.shape[0], position_sensitive_channels(name, input, height, width), height, width)
    return empty(sizes, input.dtype), empty(sizes, int32)


@meta("torchvision::ps_roi_align")
def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    return _position_sensitive("ps_roi_align", input, rois, pooled_height, pooled_width)


@meta("torchvision::ps_roi_pool")
def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    return _position_sensitive("ps_roi_pool", input, rois, pooled_height, pooled_width)


@meta("torchvision::_roi_align_backward")
def roi_align_backward(
    grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width, sampling_ratio, aligned
):
    return empty((batch_size, channels, height, width), grad.dtype)


@meta("torchvision::_roi_pool_backward")
def roi_pool_backward(
    grad, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    return empty((batch_size, channels, height, width), grad.dtype)


@meta("torchvision::_ps_roi_pool_backward")
def ps_roi_pool_backward(
    grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    return empty((batch_size, channels, height, width), grad.dtype)


@meta("torchvision::_ps_roi_align_backward")
def ps_roi_align_backward(
    grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, sampling_ratio, batch_size, channels, height, width
):
    return empty((batch_size, channels, height, width), grad.dtype)
