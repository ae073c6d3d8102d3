"""Normalisations that also return their statistics, and the gradient of dropout."""

from __future__ import annotations

from rushlight.core.dtype import uint8
from rushlight.ops.composite.network.common import aten
from rushlight.ops.registry import composite


@composite(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> "
    "(Tensor, Tensor, Tensor)"
)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """Compute group_norm with the mean and the reciprocal standard deviation of each group, both (N, group)."""
    if group <= 0 or C % group:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got {C} channels and num_groups={group}"
        )
    if input.numel() != N * C * HxW:
        raise RuntimeError(f"Expected input of {N} x {C} x {HxW} elements, but got shape {list(input.shape)}")
    grouped = input.reshape([N, group, C // group * HxW])
    mean = grouped.mean([2], True)
    centred = grouped - mean
    rstd = ((centred * centred).mean([2], True) + eps).rsqrt()
    result = (centred * rstd).reshape(input.shape)
    for parameter, combine in ((weight, aten.mul.Tensor), (bias, aten.add.Tensor)):
        if parameter is not None:
            result = combine(result, parameter.reshape([1, C, *[1] * (input.dim() - 2)]))
    return result, mean.reshape([N, group]), rstd.reshape([N, group])


@composite(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)"
)
def native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps):
    return aten.native_batch_norm.default(input, weight, bias, running_mean, running_var, training, momentum, eps)


@composite(
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor)"
)
def native_batch_norm_legit_no_stats(input, weight, bias, training, momentum, eps):
    return aten.native_batch_norm.default(input, weight, bias, None, None, training, momentum, eps)


@composite(
    "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)"
)
def batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    results = aten.native_batch_norm.default(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *results, aten.empty.memory_format((0,), dtype=uint8, device=input.device)


@composite("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor")
def native_dropout_backward(grad_output, mask, scale):
    return grad_output * mask * scale
