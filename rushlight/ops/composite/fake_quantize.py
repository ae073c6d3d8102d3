"""Composite fake quantization: the forms that return one tensor, and the gradients of learnable scales."""

from __future__ import annotations

from rushlight.core.dtype import int32
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor")
def per_tensor(self, scale, zero_point, quant_min, quant_max):
    return aten.fake_quantize_per_tensor_affine_cachemask.default(self, scale, zero_point, quant_min, quant_max)[0]


@composite(
    "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, "
    "int quant_max) -> Tensor"
)
def per_tensor_of_tensors(self, scale, zero_point, quant_min, quant_max):
    enabled = aten.ones.default((1,), dtype=int32, device=self.device)
    rounding = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default
    return rounding(self, scale, zero_point, enabled, quant_min, quant_max)[0]


@composite(
    "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) "
    "-> Tensor"
)
def per_channel(self, scale, zero_point, axis, quant_min, quant_max):
    return aten.fake_quantize_per_channel_affine_cachemask.default(self, scale, zero_point, axis, quant_min, quant_max)[0]


@composite(
    "fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, "
    "Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max, "
    "int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor"
)
def observed(
    self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max,
    ch_axis, per_row_fake_quant=False, symmetric_quant=False,
):  # fmt: skip
    if not self.numel():
        return self.clone()
    return aten._fused_moving_avg_obs_fq_helper.default(
        self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max,
        ch_axis, per_row_fake_quant, symmetric_quant,
    )[0]  # fmt: skip


# The gradients of learnable scales and zero points


@composite(
    "_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, "
    "int quant_min, int quant_max, float grad_factor=1.0) -> (Tensor, Tensor, Tensor)"
)
def per_tensor_backward(grad, self, scale, zero_point, quant_min, quant_max, grad_factor=1.0):
    found = _backward(grad, self, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max, grad_factor)
    return found[0], *(each.sum().reshape(1) for each in found[1:])


@composite(
    "_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int axis, "
    "int quant_min, int quant_max, float grad_factor=1.0) -> (Tensor, Tensor, Tensor)"
)
def per_channel_backward(grad, self, scale, zero_point, axis, quant_min, quant_max, grad_factor=1.0):
    along = [-1, *(1,) * (self.dim() - axis - 1)]
    found = _backward(grad, self, scale.reshape(along), zero_point.reshape(along), quant_min, quant_max, grad_factor)
    others = [dim for dim in range(self.dim()) if dim != axis]
    return found[0], *(each.sum(others) if others else each for each in found[1:])


def _backward(
    grad: Tensor, x: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, factor: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients for x, scale and zero point, before those of the last two are summed.

    In range, x passes its gradient on, and the scale's gradient is the rounding error in quanta; out of range, it is the
    clamped integer. From "Learned Step Size Quantization" (https://arxiv.org/abs/1902.08153).
    """
    offset, inverse = zero_point.round().clamp(quant_min, quant_max), 1 / scale
    integers = (x * inverse).round() + offset
    below, above = integers < quant_min, integers > quant_max
    inside = ~(below | above)
    zeros = aten.zeros_like.default(grad)
    error = ((integers - offset) * scale - x) * inverse
    slope = error.where(inside, (quant_min - offset).where(below, quant_max - offset))
    to_offset = zeros.where(inside, -scale * grad)
    return grad.where(inside, zeros), grad * slope * factor, to_offset * factor
