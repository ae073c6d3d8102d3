"""torchvision's operators on boxes and regions of images, which archives of detectors name: `torchvision::nms` and others."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

_REGION = "Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_MAPPED = _REGION.replace("rois,", "rois, Tensor channel_mapping,")
_GRAD = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"

define_primitives(
    f"""
nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor
roi_align(Tensor input, {_REGION}, int sampling_ratio, bool aligned) -> Tensor
_roi_align_backward(Tensor grad, {_REGION}, {_GRAD}, int sampling_ratio, bool aligned) -> Tensor
roi_pool(Tensor input, {_REGION}) -> (Tensor, Tensor)
_roi_pool_backward(Tensor grad, {_REGION.replace("rois,", "rois, Tensor argmax,")}, {_GRAD}) -> Tensor
ps_roi_align(Tensor input, {_REGION}, int sampling_ratio) -> (Tensor, Tensor)
_ps_roi_align_backward(Tensor grad, {_MAPPED}, int sampling_ratio, {_GRAD}) -> Tensor
ps_roi_pool(Tensor input, {_REGION}) -> (Tensor, Tensor)
_ps_roi_pool_backward(Tensor grad, {_MAPPED}, {_GRAD}) -> Tensor
""",
    "torchvision",
)
