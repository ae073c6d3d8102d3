"""Decompositions of training operators into elementwise operators and reductions, which a backend can fuse.

In: the arguments of an operator. Out: the operator's results, computed by other operators; NotImplemented if it is better not
decomposed. The definitions are those of ATen's operators; the backward formulas are their derivatives. Stage: aot.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rushlight.core.dtype import bfloat16, float16, float32, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.meta.normalisation import statistics_dtype
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import aten as overload

aten = namespaces.namespace("aten")

TRAINING: dict[OpOverload, Callable] = {}
_MEAN, _SUM = 1, 2  # the losses' codes for their reductions
_FUSED = (float32, bfloat16, float16)


def decomposition(name: str) -> Callable[[Callable], Callable]:
    """Register the decorated function as the decomposition of an aten operator."""

    def register(function: Callable) -> Callable:
        TRAINING[overload(name)] = function
        return function

    return register


def _wide(value: Tensor | None) -> Tensor | None:
    """Convert to float32, in which the operators themselves compute; results are rounded once, at the end."""
    return None if value is None else value.to(float32)


def _cast_each(kinds: tuple, values: tuple) -> tuple:
    return tuple(None if value is None else value.to(kind) for kind, value in zip(kinds, values, strict=True))


def _sum(value: Tensor, dims: list[int]) -> Tensor:
    return aten.sum.dim_IntList(value, dims, True) if dims else value


def _count(value: Tensor, dims: list[int]) -> int:
    return math.prod(value.shape[dim] for dim in dims)


# Softmax


@decomposition("_softmax_backward_data")
def softmax_backward(grad_output, output, dim, input_dtype):
    if grad_output.dtype not in _FUSED or input_dtype not in _FUSED:
        return NotImplemented
    output = _wide(output)
    along = _wide(grad_output) * output
    return (along - output * _sum(along, [dim])).to(input_dtype)


@decomposition("_log_softmax_backward_data")
def log_softmax_backward(grad_output, output, dim, input_dtype):
    if grad_output.dtype not in _FUSED or input_dtype not in _FUSED:
        return NotImplemented
    grad = _wide(grad_output)
    return (grad - _wide(output).exp() * _sum(grad, [dim])).to(input_dtype)


# Normalisation


@decomposition("native_layer_norm_backward")
def layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    if input.dtype not in _FUSED:
        return NotImplemented
    outer = list(range(input.dim() - len(normalized_shape)))
    inner = list(range(len(outer), input.dim()))
    grad, rstd = _wide(grad_out), _wide(rstd)
    normal = (_wide(input) - _wide(mean)) * rstd
    to_input = to_weight = to_bias = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * _wide(weight)
        count = _count(input, inner)
        to_input = rstd * (scaled - _sum(scaled, inner) / count - normal * (_sum(scaled * normal, inner) / count))
    if output_mask[1]:
        to_weight = _sum(grad * normal, outer).view(list(normalized_shape))
    if output_mask[2]:
        to_bias = _sum(grad, outer).view(list(normalized_shape))
    kind = (input if weight is None else weight).dtype
    return _cast_each((input.dtype, kind, kind), (to_input, to_weight, to_bias))


def _channels(value: Tensor | None, input: Tensor) -> Tensor | None:
    return None if value is None else _wide(value).view([1, -1, *(1,) * (input.dim() - 2)])


@decomposition("native_batch_norm")
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    others = [0, *range(2, input.dim())]
    count = _count(input, others)
    if not training or input.dtype not in _FUSED or count < 2:
        return NotImplemented
    values = _wide(input)
    mean = _sum(values, others) / count
    centred = values - mean
    variance = _sum(centred * centred, others) / count
    rstd = (variance + eps).rsqrt()
    scale = rstd if weight is None else rstd * _channels(weight, input)
    out = centred * scale
    if bias is not None:
        out = out + _channels(bias, input)
    for running, batch in ((running_mean, mean), (running_var, variance * count / (count - 1))):
        if running is not None:
            aten.copy_(running, momentum * batch.view(running.shape) + (1 - momentum) * _wide(running))
    kind = statistics_dtype(input, weight, bias)
    return _cast_each((input.dtype, kind, kind), (out, mean.view([-1]), rstd.view([-1])))


@decomposition("native_batch_norm_backward")
def batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):  # fmt: skip
    if input.dtype not in _FUSED:
        return NotImplemented
    others = [0, *range(2, input.dim())]
    rstd = _channels(save_invstd, input) if train else (_channels(running_var, input) + eps).rsqrt()
    grad, centred = _wide(grad_out), _wide(input) - _channels(save_mean if train else running_mean, input)
    total, product = _sum(grad, others), _sum(grad * centred, others) * rstd
    scale = rstd if weight is None else rstd * _channels(weight, input)
    to_input = None
    if output_mask[0]:
        count = _count(input, others)
        to_input = (grad - centred * (rstd * product / count) - total / count if train else grad) * scale
    to_weight = product.view([-1]) if output_mask[1] else None
    to_bias = total.view([-1]) if output_mask[2] else None
    kind = statistics_dtype(input, weight)
    return _cast_each((input.dtype, kind, kind), (to_input, to_weight, to_bias))


# Losses


def _weights(weight: Tensor | None, labels: Tensor, counted: Tensor) -> Tensor:
    """Return the weight of each row in the loss; ignored rows have weight 0."""
    return counted.to(float32) if weight is None else aten.where.self(counted, _wide(aten.gather(weight, 0, labels)), 0.0)


@decomposition("nll_loss_forward")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    if self.dtype not in _FUSED or self.dim() != 2 or not self.numel():
        return NotImplemented
    target = target.to(int64)
    counted = target != ignore_index
    labels = aten.where.self(counted, target, 0)
    known = (labels >= 0) & (labels < self.shape[1])
    labels = aten._checked.default(labels, known, "IndexError", "Target {} is out of bounds.")
    taken = -_wide(aten.gather(self, 1, labels.unsqueeze(1)).squeeze(1))
    weights = _weights(weight, labels, counted)
    losses = aten.where.self(counted, taken if weight is None else taken * weights, 0.0)
    if reduction not in (_MEAN, _SUM):
        return losses.to(self.dtype), aten.full([], 0.0, dtype=self.dtype, device=self.device)
    total = weights.sum()
    return _cast_each((self.dtype,) * 2, (losses.sum() / total if reduction == _MEAN else losses.sum(), total))


@decomposition("nll_loss_backward")
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    if self.dtype not in _FUSED or self.dim() != 2 or not self.numel():
        return NotImplemented
    scale = -_wide(grad_output) / _wide(total_weight) if reduction == _MEAN else -_wide(grad_output)
    rows = scale.view([1, 1]) if reduction in (_MEAN, _SUM) else scale.unsqueeze(1)
    column = target.to(int64).unsqueeze(1)
    counted = column != ignore_index
    if weight is not None:
        rows = rows * _weights(weight, aten.where.self(counted, column, 0).squeeze(1), counted.squeeze(1)).unsqueeze(1)
    hit = (aten.arange(self.shape[1], device=self.device).unsqueeze(0) == column) & counted
    return aten.where.self(hit, rows, 0.0).to(self.dtype)


# Fake quantization


def _fake_quantized(x: Tensor, scale: object, zero_point: object, quant_min: int, quant_max: int) -> tuple[Tensor, Tensor]:
    """Compute like `ops/cpu/fake_quantize.py`: the zero point is added after rounding, unless it has a floating-point dtype."""
    scaled = x * (1 / scale)
    if isinstance(zero_point, Tensor) and zero_point.dtype.is_floating_point:
        integers = (scaled + zero_point).round()
    else:
        integers = scaled.round() + zero_point
    mask = (integers >= quant_min) & (integers <= quant_max)
    return ((integers.clamp(quant_min, quant_max) - zero_point) * scale).to(x.dtype), mask


def _in_float32(number: float, like: Tensor) -> Tensor:
    return aten.full.default((), number, dtype=float32, device=like.device)


@decomposition("fake_quantize_per_tensor_affine_cachemask")
def fake_quantize_per_tensor(self, scale, zero_point, quant_min, quant_max):
    return _fake_quantized(self, _in_float32(scale, self), zero_point, quant_min, quant_max)


@decomposition("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def fake_quantize_of_tensors(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    values, mask = _fake_quantized(self, scale.reshape(()), zero_point.reshape(()).to(int64), quant_min, quant_max)
    is_on = fake_quant_enabled.reshape(()) != 0
    return aten.where.self(is_on, values, self), mask | ~is_on


@decomposition("fake_quantize_per_channel_affine_cachemask")
def fake_quantize_per_channel(self, scale, zero_point, axis, quant_min, quant_max):
    along = [-1, *(1,) * (self.dim() - axis - 1)]
    return _fake_quantized(self, scale.reshape(along), zero_point.reshape(along), quant_min, quant_max)
