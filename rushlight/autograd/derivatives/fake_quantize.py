"""Derivatives of fake quantization: the gradient passes where values were in range, and is 0 elsewhere."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _where_in_range(grad, result1):
    return grad * result1


for _name in (
    "fake_quantize_per_tensor_affine_cachemask", "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "fake_quantize_per_channel_affine_cachemask", "_fused_moving_avg_obs_fq_helper",
):  # fmt: skip
    derivative(_name, self=_where_in_range, non_differentiable_outputs=(1,))


def _differentiate_per_tensor(grad, self, scale, zero_point, quant_min, quant_max, grad_factor):
    backward = aten._fake_quantize_learnable_per_tensor_affine_backward.default
    return backward(grad, self, scale, zero_point, quant_min, quant_max, grad_factor)


def _differentiate_per_channel(grad, self, scale, zero_point, axis, quant_min, quant_max, grad_factor):
    backward = aten._fake_quantize_learnable_per_channel_affine_backward.default
    return backward(grad, self, scale, zero_point, axis, quant_min, quant_max, grad_factor)


derivative("_fake_quantize_learnable_per_tensor_affine", ("self", "scale", "zero_point"), _differentiate_per_tensor)
derivative("_fake_quantize_learnable_per_channel_affine", ("self", "scale", "zero_point"), _differentiate_per_channel)
