"""Derivatives of cumulative operators: each is a linear recurrence that runs from the last step to the first."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.reductions import product_before
from rushlight.autograd.derivatives.views import pad_dim
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _conjugate(value: Tensor) -> Tensor:
    return value.conj() if value.is_complex() else value


def _shift_to_front(value: Tensor, axis: int, step: int) -> Tensor:
    """Return `value` shifted towards the front of `axis` by `step`, with zeros shifted in."""
    size = value.size(axis)
    count = min(step, size)
    return pad_dim(value.narrow(axis, count, size - count), axis, 0, count)


def _backward_recurrence(factor: Tensor, addend: Tensor, axis: int) -> Tensor:
    """Compute s[k] = addend[k] + factor[k] * s[k + 1] with 0 after the end, in log2(size) steps."""
    step = 1
    while step < addend.size(axis):
        addend = addend + factor * _shift_to_front(addend, axis, step)
        factor = factor * _shift_to_front(factor, axis, step)
        step *= 2
    return addend


def _differentiate_cumprod(grad, self, dim):
    # Don't divide by values, so that the gradient is exact where values are 0.
    if not self.dim():
        return grad
    axis, factors = wrap_dim(dim, self.dim()), _conjugate(self.to(grad.dtype))
    after = _backward_recurrence(_shift_to_front(factors, axis, 1), grad, axis)
    return product_before(factors, axis, 1) * after


derivative("cumprod", self=_differentiate_cumprod)


def _differentiate_running_extremum(grad, self_sizes, dim, result1):
    return aten.scatter_add(grad.new_zeros(self_sizes), dim, result1, grad)


derivative("cummax", self=_differentiate_running_extremum, non_differentiable_outputs=(1,))
derivative("cummin", self=_differentiate_running_extremum, non_differentiable_outputs=(1,))


def _exponential_of_difference(high: Tensor, low: Tensor) -> Tensor:
    """Compute exp(high - low), 0 where `high` is the logarithm of 0."""
    nothing = high.real if high.is_complex() else high
    difference = high - low
    vanishes = nothing == -float("inf")
    return aten.masked_fill(difference.masked_fill(vanishes, 0).exp(), vanishes, 0)


def _differentiate_logcumsumexp(grad, self, result, dim):
    if not self.dim():
        return grad
    axis = wrap_dim(dim, self.dim())
    following = result.narrow(axis, 1, result.size(axis) - 1) if result.size(axis) else result
    current = result.narrow(axis, 0, following.size(axis))
    factor = pad_dim(_exponential_of_difference(current, following), axis, 0, min(result.size(axis), 1))
    sums = _backward_recurrence(_conjugate(factor), grad, axis)
    return _conjugate(_exponential_of_difference(self, result)) * sums


derivative("logcumsumexp", self=_differentiate_logcumsumexp)
