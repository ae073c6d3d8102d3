"""The derivative of scatter_reduce."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.indexing import scattered_from
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _differentiate_scatter_reduce(grad, self, dim, index, src, reduce, include_self, result):
    """Return the gradients of `self` and `src`."""
    rule = {"sum": _sum, "mean": _differentiate_mean, "prod": _differentiate_product}.get(reduce, _differentiate_extremum)
    to_self, to_src = rule(grad, self, dim, index, src, include_self, result)
    if not include_self:
        to_self = aten.scatter.value(to_self, dim, index, 0)
    return to_self, to_src


def _sum(grad, self, dim, index, src, include_self, result):
    return grad, scattered_from(grad, src.shape, dim, index)


def _counts(self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    start = aten.ones_like(self) if include_self else aten.zeros_like(self)
    return aten.scatter_add(start, dim, index, aten.ones_like(src))


def _differentiate_mean(grad, self, dim, index, src, include_self, result):
    counts = _counts(self, dim, index, src, include_self)
    share = grad / aten.masked_fill(counts, counts == 0, 1)
    return share, scattered_from(share, src.shape, dim, index)


def _differentiate_product(grad, self, dim, index, src, include_self, result):
    # A factor of 0 gets the product of the other factors if it is the only zero; other factors get result / factor.
    filled = aten.masked_fill(self, self == 0, 1)
    to_self = grad * aten.scatter_reduce.two(filled, dim, index, src, "prod", include_self=include_self) / filled
    zeros = src == 0
    none = aten.zeros_like(self)
    zeros_there = scattered_from(aten.scatter_add(none, dim, index, zeros.to(self.dtype)), src.shape, dim, index)
    only_zero = zeros.logical_and(zeros_there == 1)
    without = aten.masked_fill(src, only_zero, 1)
    others = aten.scatter_reduce.two(self, dim, index, without, "prod", include_self=include_self)
    quotient = scattered_from(grad * result, src.shape, dim, index) / aten.masked_fill(src, zeros, 1)
    return to_self, aten.where.self(only_zero, scattered_from(grad * others, src.shape, dim, index), quotient)


def _differentiate_extremum(grad, self, dim, index, src, include_self, result):
    """Return the gradient, shared equally among all elements equal to the result."""
    from_self = (self == result).to(grad.dtype)
    from_src = (src == scattered_from(result, src.shape, dim, index)).to(grad.dtype)
    start = from_self if include_self else aten.zeros_like(from_self)
    counts = aten.scatter_add(start, dim, index, from_src)
    share = grad / aten.masked_fill(counts, counts == 0, 1)
    return from_self * share, from_src * scattered_from(share, src.shape, dim, index)


derivative("scatter_reduce.two", ("self", "src"), _differentiate_scatter_reduce)
