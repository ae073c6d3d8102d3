"""Meta rules of reductions."""

from __future__ import annotations

from rushlight.core.dtype import bool_, int64, uint8
from rushlight.ops.cpu.reductions import sum_dtype
from rushlight.ops.meta.common import empty, reduced_sizes
from rushlight.ops.registry import meta


@meta("sum.dim_IntList", "prod.dim_int")
def sum_(self, dim, keepdim=False, *, dtype=None):
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), sum_dtype(self, dtype))


@meta("amax", "amin")
def extremum(self, dim=(), keepdim=False):
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), self.dtype)


@meta("any.dims", "all.dims")
def quantifier(self, dim=None, keepdim=False):
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), uint8 if self.dtype is uint8 else bool_)


@meta("argmax", "argmin")
def position(self, dim=None, keepdim=False):
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), int64)


@meta("var.correction")
def var(self, dim=None, *, correction=None, keepdim=False):
    return empty(reduced_sizes(self._impl.sizes, dim, keepdim), self.dtype.to_real())
