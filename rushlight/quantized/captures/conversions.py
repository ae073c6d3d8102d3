"""Rules for conversions between float tensors and integers."""

from __future__ import annotations

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor
from rushlight.ops.modes import SuspendModes
from rushlight.quantized.captures.tensors import PLAIN, CapturedQuantized, of_quantized, rounded, rule, target_of
from rushlight.quantized.quantizer import inverse_of


@rule("aten::quantize_per_tensor", "aten::quantize_per_tensor.tensor_qparams")
def quantize_per_tensor(self, scale, zero_point, dtype):
    if dtype not in PLAIN or self.dtype is not float32:
        return NotImplemented
    quantizer = target_of(*map(_number, (scale, zero_point)))
    return CapturedQuantized(rounded(self, inverse_of(quantizer.scale), dtype, quantizer), dtype, quantizer)


def _number(value: Tensor | float) -> float:
    """Return the value of a scale or a zero point. NotImplementedError for a tensor whose value is unknown."""
    if not isinstance(value, Tensor):
        return value
    if value._impl.fake:
        raise NotImplementedError("quantize_per_tensor by a scale or a zero point that is calculated")
    with SuspendModes():
        return value.item()


@of_quantized("aten::dequantize.self")
def dequantize(self):
    return self.numbers()


@of_quantized("aten::int_repr")
def int_repr(self):
    return self.integers.clone()


@of_quantized("aten::q_scale")
def q_scale(self):
    return self.quantizer.scale


@of_quantized("aten::q_zero_point")
def q_zero_point(self):
    return self.quantizer.zero_point
