"""Checks and Meta rules of cumprod, cummax, cummin and logcumsumexp."""

from __future__ import annotations

from rushlight.core.dtype import int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import like
from rushlight.ops.meta.sorting import cumsum_dtype
from rushlight.ops.registry import meta


def check_cumulative_extremum(self: Tensor, dim: int, name: str) -> int:
    """Return the wrapped dimension; NotImplementedError for complex tensors, which have no order."""
    axis = wrap_dim(dim, self.dim())
    if self.dtype.is_complex:
        raise not_implemented(f"{name}_cpu", self.dtype)
    return axis


def check_logcumsumexp(self: Tensor, dim: int) -> int:
    """Return the wrapped dimension; NotImplementedError for integers."""
    axis = wrap_dim(dim, self.dim())
    if self.dtype.is_integral:
        raise not_implemented("logcumsumexp_out_cpu", self.dtype)
    return axis


@meta("cumprod")
def cumprod(self, dim, *, dtype=None):
    wrap_dim(dim, self.dim())
    return like(self, cumsum_dtype(self, dtype))


@meta("cummax", "cummin")
def cumulative_extremum(self, dim):
    check_cumulative_extremum(self, dim, "cummax")
    return like(self), like(self, int64)


@meta("logcumsumexp")
def logcumsumexp(self, dim):
    check_logcumsumexp(self, dim)
    return like(self)
