"""The functions of the library on quantized tensors: `quantize_per_tensor`, `dequantize`, and so on."""

from __future__ import annotations

from rushlight.ops.bindings import make_function
from rushlight.quantized.operators import aten

_empty_affine_quantized = make_function(aten._empty_affine_quantized)
_empty_per_channel_affine_quantized = make_function(aten._empty_per_channel_affine_quantized)
_make_per_channel_quantized_tensor = make_function(aten._make_per_channel_quantized_tensor)
_make_per_tensor_quantized_tensor = make_function(aten._make_per_tensor_quantized_tensor)
dequantize = make_function(aten.dequantize)
int_repr = make_function(aten.int_repr)
q_per_channel_axis = make_function(aten.q_per_channel_axis)
q_per_channel_scales = make_function(aten.q_per_channel_scales)
q_per_channel_zero_points = make_function(aten.q_per_channel_zero_points)
q_scale = make_function(aten.q_scale)
q_zero_point = make_function(aten.q_zero_point)
quantize_per_channel = make_function(aten.quantize_per_channel)
quantize_per_tensor = make_function(aten.quantize_per_tensor)
quantize_per_tensor_dynamic = make_function(aten.quantize_per_tensor_dynamic)
