"""Adaptive pooling of images; one dimension is a special case of it, and volumes go through it twice."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

define_primitives(
    """
_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor
_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor
adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)
adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor
"""
)
