"""Primitives of products with 8-bit and 4-bit integers, for quantized models."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

PRODUCTS = """
_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor
_int_mm(Tensor self, Tensor mat2) -> Tensor
_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor
_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor
_dyn_quant_pack_4bit_weight(Tensor weights, Tensor scales_zeros, Tensor? bias, int block_size, int in_features, int out_features) -> Tensor
_dyn_quant_matmul_4bit(Tensor inp, Tensor packed_weights, int block_size, int in_features, int out_features) -> Tensor
"""

define_primitives(PRODUCTS)
