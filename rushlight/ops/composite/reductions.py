"""Composite reductions: whole-tensor forms, means, extrema with indices, norms."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_, dtype, float32, get_default_dtype, int64, uint8
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.meta.common import reduced_dims
from rushlight.ops.meta.reductions import check_extremum
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor")
def sum_all(self, *, dtype=None):
    return aten.sum.dim_IntList(self, None, False, dtype=dtype)


@composite("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor")
def mean_all(self, *, dtype=None):
    return mean(self, None, False, dtype=dtype)


@composite("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
def mean(self, dim, keepdim=False, *, dtype=None):
    kind = dtype or self.dtype
    if kind.is_integral:
        what = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. "
            f"Got: {kind.scalar_name}"
        )
    count = math.prod(self.shape[axis] for axis in reduced_dims(self.dim(), dim))
    if not _is_half(kind):
        return aten.div.Tensor(aten.sum.dim_IntList(self, dim, keepdim, dtype=dtype), count)
    return aten.div.Tensor(aten.sum.dim_IntList(self.to(kind), dim, keepdim, dtype=float32), count).to(kind)


def _is_half(kind: dtype) -> bool:
    """Return whether a dtype is a 16-bit float, for which only the final result is rounded."""
    return kind.is_floating_point and kind.itemsize == 2


@composite("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor")
def prod_all(self, *, dtype=None):
    return aten.prod.dim_int(aten.reshape.default(self, (-1,)), 0, False, dtype=dtype)


@composite("any(Tensor self) -> Tensor")
def any_all(self):
    return aten.any.dims(self, None, False)


@composite("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
def any_dim(self, dim, keepdim=False):
    return aten.any.dims(self, [dim], keepdim)


@composite("all(Tensor self) -> Tensor")
def all_all(self):
    return aten.all.dims(self, None, False)


@composite("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
def all_dim(self, dim, keepdim=False):
    return aten.all.dims(self, [dim], keepdim)


@composite("max(Tensor self) -> Tensor")
def max_all(self):
    _check_not_empty(self, "max")
    return aten.amax.default(self, (), False)


@composite("min(Tensor self) -> Tensor")
def min_all(self):
    _check_not_empty(self, "min")
    return aten.amin.default(self, (), False)


def _check_not_empty(self: Tensor, name: str) -> None:
    if not self.numel():
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )


def _with_indices(self: Tensor, position: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    values = aten.gather.default(self, dim, position) if self.dim() else self
    if keepdim or not self.dim():
        return values, position
    return aten.squeeze.dims(values, [dim]), aten.squeeze.dims(position, [dim])


def _is_recorded(self: Tensor) -> bool:
    """Return whether autograd needs one element to get the gradient; `amax` would share it among equal elements."""
    return state.grad_enabled and self.requires_grad


# A 0-dim integer tensor is an operand; only a Python number is a dimension.
@composite("max.other(Tensor self, Tensor other) -> Tensor")
def max_other(self, other):
    return aten.maximum.default(self, other)


@composite("min.other(Tensor self, Tensor other) -> Tensor")
def min_other(self, other):
    return aten.minimum.default(self, other)


def _bool_to_integer(self: Tensor) -> Tensor:
    """Return the tensor in a dtype that argmax takes: bool becomes an integer."""
    return self.to(uint8) if self.dtype is bool_ else self


@composite("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
def max_dim(self, dim, keepdim=False):
    dim = wrap_dim(dim, self.dim())
    check_extremum(self, dim, "max")
    if not _is_recorded(self):
        return aten.amax.default(self, [dim], keepdim), aten.argmax.default(_bool_to_integer(self), dim, keepdim)
    return _with_indices(self, aten.argmax.default(_bool_to_integer(self), dim, True), dim, keepdim)


@composite("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
def min_dim(self, dim, keepdim=False):
    dim = wrap_dim(dim, self.dim())
    check_extremum(self, dim, "min")
    if not _is_recorded(self):
        return aten.amin.default(self, [dim], keepdim), aten.argmin.default(_bool_to_integer(self), dim, keepdim)
    return _with_indices(self, aten.argmin.default(_bool_to_integer(self), dim, True), dim, keepdim)


@composite("var(Tensor self, bool unbiased=True) -> Tensor")
def var_all(self, unbiased=True):
    return aten.var.correction(self, None, correction=int(unbiased))


@composite("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
def var_dim(self, dim, unbiased=True, keepdim=False):
    return aten.var.correction(self, dim, correction=int(unbiased), keepdim=keepdim)


def _deviation(self: Tensor, dim, correction, keepdim: bool = False) -> Tensor:
    """Return the square root of the variance."""
    if not _is_half(self.dtype):
        return _root(aten.var.correction(self, dim, correction=correction, keepdim=keepdim))
    return _root(aten.var.correction(self.to(float32), dim, correction=correction, keepdim=keepdim)).to(self.dtype)


def _root(variance: Tensor) -> Tensor:
    """Return the square root, with gradient 0 at 0."""
    if not (state.grad_enabled and variance.requires_grad):
        return aten.sqrt.default(variance)
    zero = variance == 0
    return aten.masked_fill(aten.sqrt.default(aten.masked_fill(variance, zero, 1)), zero, 0)


@composite("std(Tensor self, bool unbiased=True) -> Tensor")
def std_all(self, unbiased=True):
    return _deviation(self, None, int(unbiased))


@composite("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
def std_dim(self, dim, unbiased=True, keepdim=False):
    return _deviation(self, dim, int(unbiased), keepdim)


@composite("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
def std(self, dim=None, *, correction=None, keepdim=False):
    return _deviation(self, dim, correction, keepdim)


@composite(
    "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)"
)
def var_mean(self, dim=None, *, correction=None, keepdim=False):
    return aten.var.correction(self, dim, correction=correction, keepdim=keepdim), mean(self, dim, keepdim)


@composite("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)")
def var_mean_all(self, unbiased=True):
    return var_mean(self, None, correction=int(unbiased))


@composite("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
def var_mean_dim(self, dim, unbiased=True, keepdim=False):
    return var_mean(self, dim, correction=int(unbiased), keepdim=keepdim)


@composite("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)")
def std_mean_all(self, unbiased=True):
    return std_mean(self, None, correction=int(unbiased))


@composite("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)")
def std_mean_dim(self, dim, unbiased=True, keepdim=False):
    return std_mean(self, dim, correction=int(unbiased), keepdim=keepdim)


@composite(
    "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)"
)
def std_mean(self, dim=None, *, correction=None, keepdim=False):
    return std(self, dim, correction=correction, keepdim=keepdim), mean(self, dim, keepdim)


@composite("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
def logsumexp(self, dim, keepdim=False):
    if _is_half(self.dtype):
        return logsumexp(self.to(float32), dim, keepdim).to(self.dtype)
    value = self.to(get_default_dtype()) if self.dtype.is_integral else self
    if not value.numel():
        return aten.log.default(aten.sum.dim_IntList(aten.exp.default(value), dim, keepdim))
    parts = value.detach()
    high = aten.amax.default(parts.real if parts.is_complex() else parts, dim, True)
    safe = aten.masked_fill(high, aten.isinf.default(high), 0)
    total = aten.log.default(aten.sum.dim_IntList(aten.exp.default(value - safe), dim, True)) + safe
    return total if keepdim else aten.squeeze.dims(total, reduced_dims(self.dim(), dim))


@composite("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor")
def argsort(self, dim=-1, descending=False):
    return aten.sort.stable(self, stable=False, dim=dim, descending=descending)[1]


@composite("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor")
def argsort_stable(self, *, stable, dim=-1, descending=False):
    return aten.sort.stable(self, stable=stable, dim=dim, descending=descending)[1]


@composite("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
def sort(self, dim=-1, descending=False):
    return aten.sort.stable(self, stable=False, dim=dim, descending=descending)


@composite("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", "count_nonzero(Tensor self, int? dim=None) -> Tensor")
def count_nonzero(self, dim=None):
    return aten.sum.dim_IntList((self != 0) if self.dtype is not bool_ else self, dim, dtype=int64)
