"""Decompositions: operators of training written with elementwise operators and reductions, which a backend fuses.

In: the arguments of an operator. Out: what the operator returns, calculated by others; or NotImplemented, where it is better
left whole. Definitions are the operators' own in ATen; the backward formulas are their derivatives. Stage: aot.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import aten as overload

aten = namespaces.namespace("aten")

TRAINING: dict[OpOverload, Callable] = {}
_MEAN, _SUM = 1, 2  # as the losses number their reductions


def decomposition(name: str) -> Callable[[Callable], Callable]:
    """Register the decorated function as the decomposition of an aten operator."""

    def register(function: Callable) -> Callable:
        TRAINING[overload(name)] = function
        return function

    return register


def _sum(value: Tensor, dims: list[int]) -> Tensor:
    return aten.sum.dim_IntList(value, dims, True) if dims else value


def _count(value: Tensor, dims: list[int]) -> int:
    return math.prod(value.shape[dim] for dim in dims)


# Softmax


@decomposition("_softmax_backward_data")
def softmax_backward(grad_output, output, dim, input_dtype):
    if grad_output.dtype is not float32 or input_dtype is not float32:
        return NotImplemented
    along = grad_output * output
    return along - output * _sum(along, [dim])


@decomposition("_log_softmax_backward_data")
def log_softmax_backward(grad_output, output, dim, input_dtype):
    if grad_output.dtype is not float32 or input_dtype is not float32:
        return NotImplemented
    return grad_output - output.exp() * _sum(grad_output, [dim])


# Normalisation


@decomposition("native_layer_norm_backward")
def layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    if input.dtype is not float32 or (weight is not None and weight.dtype is not float32):
        return NotImplemented
    outer = list(range(input.dim() - len(normalized_shape)))
    inner = list(range(len(outer), input.dim()))
    normal = (input - mean) * rstd
    to_input = to_weight = to_bias = None
    if output_mask[0]:
        scaled = grad_out if weight is None else grad_out * weight
        count = _count(input, inner)
        to_input = rstd * (scaled - _sum(scaled, inner) / count - normal * (_sum(scaled * normal, inner) / count))
    if output_mask[1]:
        to_weight = _sum(grad_out * normal, outer).view(list(normalized_shape))
    if output_mask[2]:
        to_bias = _sum(grad_out, outer).view(list(normalized_shape))
    return to_input, to_weight, to_bias


def _channels(value: Tensor | None, input: Tensor) -> Tensor | None:
    return None if value is None else value.view([1, -1, *(1,) * (input.dim() - 2)])


@decomposition("native_batch_norm")
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    others = [0, *range(2, input.dim())]
    count = _count(input, others)
    if not training or input.dtype is not float32 or count < 2:
        return NotImplemented
    mean = _sum(input, others) / count
    centred = input - mean
    variance = _sum(centred * centred, others) / count
    rstd = (variance + eps).rsqrt()
    scale = rstd if weight is None else rstd * _channels(weight, input)
    out = centred * scale
    if bias is not None:
        out = out + _channels(bias, input)
    for running, batch in ((running_mean, mean), (running_var, variance * count / (count - 1))):
        if running is not None:
            aten.copy_(running, momentum * batch.view(running.shape) + (1 - momentum) * running)
    return out, mean.view([-1]), rstd.view([-1])


@decomposition("native_batch_norm_backward")
def batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):  # fmt: skip
    if input.dtype is not float32 or not train:
        return NotImplemented
    others = [0, *range(2, input.dim())]
    count = _count(input, others)
    rstd = _channels(save_invstd, input)
    centred = input - _channels(save_mean, input)
    total, product = _sum(grad_out, others), _sum(grad_out * centred, others) * rstd
    scale = rstd if weight is None else rstd * _channels(weight, input)
    to_input = None
    if output_mask[0]:
        to_input = (grad_out - centred * (rstd * product / count) - total / count) * scale
    to_weight = product.view([-1]) if output_mask[1] else None
    return to_input, to_weight, total.view([-1]) if output_mask[2] else None


# Losses


def _counted(target: Tensor, ignore_index: int) -> Tensor:
    """Which labels count."""
    return target != ignore_index


@decomposition("nll_loss_forward")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    if self.dtype is not float32 or weight is not None or self.dim() != 2 or not self.numel():
        return NotImplemented
    counted = _counted(target, ignore_index)
    labels = aten.where.self(counted, target, 0)
    taken = aten.gather(self, 1, labels.unsqueeze(1)).squeeze(1)
    losses = aten.where.self(counted, -taken, 0.0)
    if reduction not in (_MEAN, _SUM):
        return losses, aten.full([], 0.0, dtype=self.dtype)
    total = counted.to(self.dtype).sum()
    return losses.sum() / total if reduction == _MEAN else losses.sum(), total


@decomposition("nll_loss_backward")
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    if self.dtype is not float32 or weight is not None or self.dim() != 2 or not self.numel():
        return NotImplemented
    scale = -grad_output / total_weight if reduction == _MEAN else -grad_output
    rows = scale.view([1, 1]) if reduction in (_MEAN, _SUM) else scale.unsqueeze(1)
    column = target.unsqueeze(1)
    hit = (aten.arange(self.shape[1], dtype=target.dtype).unsqueeze(0) == column) & _counted(column, ignore_index)
    return aten.where.self(hit, rows, 0.0)
