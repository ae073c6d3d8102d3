"""Primitives that quantized layers consist of in captured graphs, over plain tensors of bytes (uint8 or int8)."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

BYTES = """
byte_layer(Tensor input, Tensor weight, Tensor zero_point, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor
quantize_bytes(Tensor self, float inverse, int zero_point, ScalarType dtype, bool rounds_first=False) -> Tensor
quantize_bytes.tensors(Tensor self, Tensor inverse, Tensor zero_point, ScalarType dtype) -> Tensor
rounded_mul(Tensor self, Tensor other) -> Tensor
rounded_mul.Scalar(Tensor self, float other) -> Tensor
"""

define_primitives(BYTES, "rushlight")
