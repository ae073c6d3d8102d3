"""Primitives of scans along a dimension: running products, extrema and log-sums of exponentials."""

from __future__ import annotations

from rushlight.ops.registry import define_inplace, define_primitives

define_primitives(
    """
cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)
cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)
logcumsumexp(Tensor self, int dim) -> Tensor
"""
)
define_inplace(("cumprod",))
