"""Operators without derivatives: products with 8-bit and 4-bit integers, and the parts of quantized layers."""

from __future__ import annotations

from rushlight.autograd.derivative_table import non_differentiable

non_differentiable(
    "_weight_int8pack_mm", "_int_mm", "_convert_weight_to_int4pack_for_cpu", "_weight_int4pack_mm_for_cpu",
    "_dyn_quant_pack_4bit_weight", "_dyn_quant_matmul_4bit", "rushlight::byte_layer", "rushlight::quantize_bytes",
    "rushlight::multiply_add", "rushlight::rounded_mul", "rushlight::choose_quantization",
)  # fmt: skip
