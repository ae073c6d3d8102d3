"""Checks and the Meta rule of scatter_reduce."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty
from rushlight.ops.meta.indexing import check_scatter
from rushlight.ops.registry import meta

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def check_scatter_reduce(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str) -> int:
    """Return the wrapped dimension; RuntimeError for an unknown reduction or arguments that do not fit together."""
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if self.dtype.is_complex and reduce in ("amax", "amin"):
        raise not_implemented("scatter_reduce", self.dtype)
    return check_scatter(self, dim, index, src, "scatter")


@meta("scatter_reduce.two")
def scatter_reduce(self, dim, index, src, reduce, *, include_self=True):
    check_scatter_reduce(self, dim, index, src, reduce)
    return empty(self._impl.sizes, self.dtype)
