"""Derivatives of torchvision's region operators with respect to the image; regions have no gradient, as in torchvision."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.autograd.derivatives.refused import refuse
from rushlight.ops.packet import namespaces

vision = namespaces.namespace("torchvision")

non_differentiable("torchvision::nms", "torchvision::box_iou_rotated")


def _differentiate_align(grad, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned, input_sizes):
    return vision._roi_align_backward.default(
        grad, rois, spatial_scale, pooled_height, pooled_width, *input_sizes, sampling_ratio, aligned
    )


def _differentiate_pool(grad, rois, spatial_scale, pooled_height, pooled_width, result1, input_sizes):
    return vision._roi_pool_backward.default(
        grad, rois, result1, spatial_scale, pooled_height, pooled_width, *input_sizes
    )


def _differentiate_ps_align(grad, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, result1, input_sizes):
    return vision._ps_roi_align_backward.default(
        grad, rois, result1, spatial_scale, pooled_height, pooled_width, sampling_ratio, *input_sizes
    )


def _differentiate_ps_pool(grad, rois, spatial_scale, pooled_height, pooled_width, result1, input_sizes):
    return vision._ps_roi_pool_backward.default(
        grad, rois, result1, spatial_scale, pooled_height, pooled_width, *input_sizes
    )


derivative("torchvision::roi_align", input=_differentiate_align)
derivative("torchvision::roi_pool", input=_differentiate_pool, non_differentiable_outputs=(1,))
derivative("torchvision::ps_roi_align", input=_differentiate_ps_align, non_differentiable_outputs=(1,))
derivative("torchvision::ps_roi_pool", input=_differentiate_ps_pool, non_differentiable_outputs=(1,))


_refuse_double_backward = refuse("pooling of regions can be differentiated once: double backwards is not supported")
for _name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"):
    derivative(f"torchvision::_{_name}_backward", grad=_refuse_double_backward)
