"""Derivatives of reductions, of sorting and of softmax."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.autograd.derivatives.complex import conjugate
from rushlight.autograd.derivatives.views import pad_dim, restore_dims
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import reduced_dims
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

non_differentiable("any.dims", "all.dims", "argmax", "argmin")


def _sum(grad, self_sizes, dim, keepdim):
    return restore_dims(grad, reduced_dims(len(self_sizes), dim), keepdim).expand(self_sizes)


derivative("sum.dim_IntList", self=_sum)


def _shift_with_ones(value: Tensor, axis: int, step: int) -> Tensor:
    """Return `value` shifted along `axis` by `step`, with ones shifted in."""
    size = value.size(axis)
    count = min(abs(step), size)
    kept = value.narrow(axis, 0 if step > 0 else count, size - count)
    return pad_dim(kept, axis, *((count, 0) if step > 0 else (0, count)), fill=1)


def product_before(value: Tensor, axis: int, direction: int) -> Tensor:
    """Return for each position the product of all values before it (direction 1) or after it (-1), in log2(size) steps."""
    product = _shift_with_ones(value, axis, direction)
    step = 1
    while step < value.size(axis):
        product = product * _shift_with_ones(product, axis, direction * step)
        step *= 2
    return product


def _differentiate_prod(grad, self, dim, keepdim):
    # Use the product of the other elements, because it is exact where elements are 0, unlike result / self.
    if not self.dim():
        return grad
    axis = wrap_dim(dim, self.dim())
    others = product_before(self, axis, 1) * product_before(self, axis, -1)
    return restore_dims(grad, (axis,), keepdim) * conjugate(others)


derivative("prod.dim_int", self=_differentiate_prod)


def _differentiate_extremum(grad, self, result, dim, keepdim):
    """Return the gradient, shared equally among all elements equal to the result. NaN counts as equal to NaN."""
    axes = reduced_dims(self.dim(), dim)
    extreme = restore_dims(result, axes, keepdim)
    chosen = (self == extreme).logical_or((self != self).logical_and(extreme != extreme)).to(grad.dtype)
    count = aten.sum.dim_IntList(chosen, axes, True) if axes else chosen
    return restore_dims(grad, axes, keepdim) / count * chosen


derivative("amax", self=_differentiate_extremum)
derivative("amin", self=_differentiate_extremum)


def _differentiate_var(grad, self, dim, correction, keepdim):
    axes = reduced_dims(self.dim(), dim)
    count = 1
    for axis in axes:
        count *= self.size(axis)
    degrees = count - (1 if correction is None else correction)  # as in PyTorch, also where it is negative
    grad = restore_dims(grad, axes, keepdim)
    deviation = self - self.mean(axes, True) if axes else self - self
    if not degrees:
        return grad * deviation * (float("inf") if count else float("nan"))
    return grad * deviation * 2 / degrees


derivative("var.correction", self=_differentiate_var)


def _differentiate_cumsum(grad, dim):
    return grad.flip((dim,)).cumsum(dim).flip((dim,)) if grad.dim() else grad


derivative("cumsum", self=_differentiate_cumsum)


def _differentiate_selection(grad, result1, self_sizes, dim):
    return aten.scatter.src(grad.new_zeros(self_sizes), dim, result1, grad)


derivative("sort.stable", self=_differentiate_selection, non_differentiable_outputs=(1,))
derivative("topk", self=_differentiate_selection, non_differentiable_outputs=(1,))

derivative(
    "_softmax", self=lambda grad, result, dim, self_dtype: aten._softmax_backward_data(grad, result, dim, self_dtype)
)
derivative(
    "_log_softmax",
    self=lambda grad, result, dim, self_dtype: aten._log_softmax_backward_data(grad, result, dim, self_dtype),
)


def _total(value: Tensor, dim: int) -> Tensor:
    return aten.sum.dim_IntList(value, (dim,), True) if value.dim() else value


derivative(
    "_softmax_backward_data",
    grad_output=lambda grad, output, dim, input_dtype: aten._softmax_backward_data(grad, output, dim, input_dtype),
    output=lambda grad, grad_output, output, dim: (
        grad * grad_output - grad * _total(grad_output * output, dim) - grad_output * _total(grad * output, dim)
    ),
)
derivative(
    "_log_softmax_backward_data",
    grad_output=lambda grad, output, dim: grad - _total(grad * output.exp(), dim),
    output=lambda grad, grad_output, output, dim: -grad * output.exp() * _total(grad_output, dim),
)
