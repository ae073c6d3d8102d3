"""Primitives of quantized layers in captured graphs, on plain tensors of bytes (uint8 or int8)."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

BYTES = """
byte_layer(Tensor input, Tensor weight, Tensor zero_point, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor
choose_quantization(Tensor self, int largest) -> (Tensor scale, Tensor zero_point)
quantize_bytes(Tensor self, Tensor factor, Tensor zero_point, ScalarType dtype, bool rounds_first=False) -> Tensor
multiply_add(Tensor self, Tensor factor, Tensor addend) -> Tensor
rounded_mul(Tensor self, Tensor other) -> Tensor
"""

define_primitives(BYTES, "rushlight")
