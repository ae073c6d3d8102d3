"""Derivatives of median and mode."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.views import restore_dims
from rushlight.core.strides import wrap_dim
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _differentiate_median(grad, self, result):
    """Return the gradient, shared equally among all elements equal to the result."""
    chosen = (self == result).logical_or(aten.isnan.default(result).logical_and(aten.isnan.default(self)))
    return grad / chosen.sum() * chosen.to(grad.dtype)


derivative("median", self=_differentiate_median)
derivative("nanmedian", self=_differentiate_median)


def _differentiate_mode(grad, result1, self_sizes, dim, keepdim):
    axes = (wrap_dim(dim, len(self_sizes)),) if self_sizes else ()
    position, value = restore_dims(result1, axes, keepdim), restore_dims(grad, axes, keepdim)
    return aten.scatter_add(grad.new_zeros(self_sizes), dim, position, value)


derivative("mode", self=_differentiate_mode, non_differentiable_outputs=(1,))
