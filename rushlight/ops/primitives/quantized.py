"""Primitives of products with 8-bit integers, as quantized models use them."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

PRODUCTS = """
_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor
_int_mm(Tensor self, Tensor mat2) -> Tensor
"""

define_primitives(PRODUCTS)
