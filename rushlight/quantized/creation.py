"""Operators that create quantized tensors, and operators that return their integers, scales and zero points."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import FLOATING, QUANTIZED_TYPES, dtype, float16, float32, from_numpy_dtype, qint8, quint8
from rushlight.core.qscheme import qscheme
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.quantized.layout import in_one_order, integers_of, make_quantized, one_scale, per_tensor, quantizer_of
from rushlight.quantized.quantizer import ChannelQuantizer, TensorQuantizer, choose, limits
from rushlight.quantized.registration import ANY_BACKEND, CPU, QUANTIZED, aten, kernel, operator

_EMPTY = "Layout? layout=None, Device? device=None, bool? pin_memory=None"


def _check_dtype(kind: dtype) -> dtype:
    if kind not in QUANTIZED_TYPES:
        given = "no dtype" if kind is None else f"ScalarType {kind.scalar_name}"
        raise RuntimeError(f"{given} is not supported in new_qtensor: a quantized dtype such as torch.quint8 is needed")
    return kind


def _check_values(values: Tensor) -> np.ndarray:
    if values.dtype is not float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {values.dtype.scalar_name}")
    return values._impl.array


def check_zero_point(zero_point: int, kind: dtype, name: str) -> None:
    """Raise RuntimeError for a zero point out of the dtype's range."""
    low, high = limits(kind)
    if zero_point < low:
        raise RuntimeError(f"{name} zero_point {zero_point} is below lower bound.")
    if zero_point > high:
        raise RuntimeError(f"{name} zero_point {zero_point} is above upper bound.")


@operator(
    "aten::quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor",
    "aten::quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor",
    keys=(CPU,),
)
def quantize_per_tensor(self, scale, zero_point, dtype):
    kind, values = _check_dtype(dtype), _check_values(self)
    scale, zero_point = (each.item() if isinstance(each, Tensor) else each for each in (scale, zero_point))
    check_zero_point(zero_point, kind, "quantize_tensor_per_tensor_affine")
    quantizer = TensorQuantizer(float(scale), int(zero_point))
    return make_quantized(quantizer.quantize(values, kind), kind, quantizer)


@operator(
    "aten::quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> Tensor[]",
    keys=(CPU,),
)
def quantize_each(tensors, scales, zero_points, dtype):
    settings = zip(tensors, scales.tolist(), zero_points.tolist(), strict=True)
    return [quantize_per_tensor(each, scale, zero_point, dtype) for each, scale, zero_point in settings]


@operator(
    "aten::quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor",
    keys=(CPU,),
)
def quantize_per_channel(self, scales, zero_points, axis, dtype):
    kind, values = _check_dtype(dtype), _check_values(self)
    quantizer = channel_quantizer(self.shape, scales, zero_points, axis)
    return make_quantized(quantizer.quantize(values, kind), kind, quantizer)


def channel_quantizer(sizes: tuple[int, ...], scales: Tensor, zero_points: Tensor, axis: int) -> ChannelQuantizer:
    """Return the per-channel quantizer for a tensor's sizes; RuntimeError where scales, zero points and axis do not fit."""
    if scales.dim() != 1 or zero_points.dim() != 1:
        raise RuntimeError("scale and zero_point tensors must have dimension 1")
    if scales.numel() != zero_points.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")
    if not 0 <= axis < len(sizes):
        raise RuntimeError(
            f"Channel axis out of range in per channel affine quantization. Got: {axis}Expected: [0, {len(sizes)})"
        )
    if scales.numel() != sizes[axis]:
        raise RuntimeError(f"length of scales must equal to channel, expected {sizes[axis]} got, {scales.numel()}")
    is_floating = zero_points.dtype.category == FLOATING
    kinds = (np.float32, np.float32) if is_floating else (np.float64, np.int64)
    made = (np.array(each._impl.array, kind) for each, kind in zip((scales, zero_points), kinds, strict=True))
    return ChannelQuantizer(*made, axis)


@operator(
    "aten::quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor", keys=(CPU,)
)
def quantize_per_tensor_dynamic(self, dtype, reduce_range):
    if dtype is float16:
        return self.to(float16)
    if dtype not in (quint8, qint8):
        raise RuntimeError(f"dtype {dtype} not supported: quantize_per_tensor_dynamic makes quint8, qint8 or float16")
    values, (low, high) = _check_values(self), limits(dtype)
    if reduce_range:
        low, high = low // 2, high // 2
    least, most = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    quantizer = TensorQuantizer(*choose(least, most, low, high))
    check_zero_point(quantizer.zero_point, dtype, "quantize_tensor_per_tensor_affine")
    return make_quantized(quantizer.quantize(values, dtype), dtype, quantizer)


@operator("aten::_choose_qparams_per_tensor(Tensor self, bool reduce_range=False) -> (float, int)", keys=(CPU,))
def choose_qparams(self, reduce_range=False):
    values = self._impl.array
    if not values.size:
        raise RuntimeError("_choose_qparams_per_tensor: a tensor without elements has no range")
    return choose(float(values.min()), float(values.max()), 0, 127 if reduce_range else 255)


_QUANTIZED_OF = {kind.numpy: kind for kind in QUANTIZED_TYPES[:3]}


def _quantized_type(integers: Tensor) -> dtype:
    kind = _QUANTIZED_OF.get(integers.dtype.numpy)
    if kind is None:
        raise RuntimeError(f"a quantized tensor is made of uint8, int8 or int32 integers, not of {integers.dtype}")
    return kind


@operator(
    "aten::_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor", keys=(CPU,)
)
def make_per_tensor(self, scale, zero_point):
    return per_tensor(self._impl.array.copy(), _quantized_type(self), scale, zero_point)


@operator(
    "aten::_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor", keys=(CPU,)
)
def make_per_channel(self, scale, zero_point, axis):
    quantizer = channel_quantizer(self.shape, scale, zero_point, axis)
    return make_quantized(self._impl.array.copy(), _quantized_type(self), quantizer)


@operator(
    f"aten::_empty_affine_quantized(SymInt[] size, *, ScalarType? dtype=None, {_EMPTY}, float scale=1, int zero_point=0, "
    "MemoryFormat? memory_format=contiguous_format) -> Tensor",
    keys=(ANY_BACKEND,),
)
def empty_affine(
    size, *, dtype=None, layout=None, device=None, pin_memory=None, scale=1.0, zero_point=0, memory_format=None
):
    kind = _check_dtype(dtype)
    return per_tensor(np.zeros(tuple(size), kind.numpy), kind, scale, zero_point)


@operator(
    "aten::_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, int axis, "
    f"ScalarType? dtype=None, {_EMPTY}, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    keys=(ANY_BACKEND,),
)
def empty_per_channel(
    size, *, scales, zero_points, axis, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
):
    kind = _check_dtype(dtype)
    quantizer = channel_quantizer(tuple(size), scales, zero_points, axis)
    return make_quantized(np.zeros(tuple(size), kind.numpy), kind, quantizer)


# Taking apart


def values_of(tensor: Tensor) -> np.ndarray:
    """Return the dequantized numbers of a tensor, float32."""
    return quantizer_of(tensor).dequantize(tensor._impl.array)


@operator("aten::dequantize.self(Tensor self) -> Tensor", keys=(QUANTIZED,))
def dequantize(self):
    return tensor_from_array(values_of(self), float32)


@operator("aten::dequantize.tensors(Tensor[] tensors) -> Tensor[]", keys=(QUANTIZED, CPU))
def dequantize_each(tensors):
    return [each.dequantize() for each in tensors]


@kernel(CPU, "dequantize.self")
def as_float(self):
    return self.to(float32)


@operator("aten::int_repr(Tensor self) -> Tensor")
def int_repr(self):
    return in_one_order(integers_of(self).clone())


@operator("aten::q_scale(Tensor self) -> float")
def q_scale(self):
    return one_scale(self).scale


@operator("aten::q_zero_point(Tensor self) -> int")
def q_zero_point(self):
    return one_scale(self).zero_point


def _channel_quantizer_of(self: Tensor) -> ChannelQuantizer:
    found = quantizer_of(self)
    if not isinstance(found, ChannelQuantizer):
        raise RuntimeError(
            "Expected quantizer->qscheme() == kPerChannelAffine || quantizer->qscheme() == kPerChannelAffineFloatQParams to be "
            f"true, but got false: the tensor is quantized by {found.scheme}, and q_scale() is its scale"
        )
    return found


@operator("aten::q_per_channel_scales(Tensor self) -> Tensor")
def q_per_channel_scales(self):
    return _plain(_channel_quantizer_of(self).scales)


@operator("aten::q_per_channel_zero_points(Tensor self) -> Tensor")
def q_per_channel_zero_points(self):
    return _plain(_channel_quantizer_of(self).zero_points)


@operator("aten::q_per_channel_axis(Tensor self) -> int")
def q_per_channel_axis(self):
    return _channel_quantizer_of(self).axis


def _plain(array: np.ndarray) -> Tensor:
    return tensor_from_array(array.copy(), from_numpy_dtype(array.dtype))


@operator("aten::qscheme(Tensor self) -> QScheme")
def scheme_number(self):
    return quantizer_of(self).scheme.number


def scheme_of(tensor: Tensor) -> qscheme:
    """Return the scheme of a quantized tensor; NotImplementedError for any other."""
    aten.qscheme(tensor)
    return quantizer_of(tensor).scheme
