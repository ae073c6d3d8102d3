"""The text of a quantized tensor, as torch prints it."""

from __future__ import annotations

from rushlight.core.printing import format_quantized
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.quantized.creation import values_of
from rushlight.quantized.layout import quantizer_of
from rushlight.quantized.quantizer import ChannelQuantizer, Quantizer


def quantized_text(tensor: Tensor) -> str:
    """Return the `repr` of a quantized tensor."""
    quantizer = quantizer_of(tensor)
    return format_quantized(values_of(tensor), tensor.dtype, quantizer.scheme, _describe_quantizer(quantizer))


def _describe_quantizer(quantizer: Quantizer) -> list[str]:
    if isinstance(quantizer, ChannelQuantizer):
        scales, zero_points = (repr(tensor_from_array(each)) for each in (quantizer.scales, quantizer.zero_points))
        return [f"scale={scales}", f"zero_point={zero_points}", f"axis={quantizer.axis}"]
    return [f"scale={quantizer.scale}", f"zero_point={quantizer.zero_point}"]
