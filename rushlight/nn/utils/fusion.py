"""Fold batch normalisation in evaluation mode into the layer before it."""

from __future__ import annotations

import copy

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """Return a copy of a convolution with the batch normalisation after it folded in; ValueError in training mode.

    `transpose` says that the convolution is a transposed one.
    """
    fused = _copy_for_evaluation(conv, bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """Return a copy of a linear layer with the batch normalisation after it folded in. ValueError in training mode,
    AssertionError for other features."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = _copy_for_evaluation(linear, bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution followed by a normalisation with the given mean, variance, weight and bias."""
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _fold_batch_norm(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer followed by a normalisation with the given mean, variance, weight and bias."""
    return _fold_batch_norm(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _copy_for_evaluation(layer: Module, bn: Module) -> Module:
    if layer.training or bn.training:
        raise ValueError("Fusion only for eval! Call eval() on both modules first")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError("Fusion needs the running statistics of the batch normalisation: it has none")
    return copy.deepcopy(layer)


def _fold_batch_norm(weight, bias, mean, variance, eps: float, scale, shift, shape: list[int]) -> tuple[Parameter, Parameter]:
    bias = mean.new_zeros(mean.shape) if bias is None else bias
    scale = mean.new_ones(mean.shape) if scale is None else scale
    shift = mean.new_zeros(mean.shape) if shift is None else shift
    factor = scale * (variance + eps).rsqrt()
    new_weight = (weight * factor.reshape(shape)).to(weight.dtype)
    new_bias = ((bias - mean) * factor + shift).to(bias.dtype)
    return Parameter(new_weight.detach(), weight.requires_grad), Parameter(new_bias.detach(), bias.requires_grad)
