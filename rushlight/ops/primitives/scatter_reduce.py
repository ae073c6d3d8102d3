"""The primitive scatter_reduce."""

from __future__ import annotations

from rushlight.ops.registry import define_inplace, define_primitives

define_primitives(
    """
scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor
"""
)
define_inplace(("scatter_reduce.two",))
