"""Primitives that select a value by rank or frequency, or hash values into one number."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

define_primitives(
    """
median(Tensor self) -> Tensor
nanmedian(Tensor self) -> Tensor
mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)
hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor
"""
)
