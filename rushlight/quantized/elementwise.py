"""Elementwise functions on quantized tensors. An 8-bit tensor has at most 256 different values, so each function becomes a
table look-up.

In: a quantized tensor, a function of float32 arrays, and the scale and zero point of the result. Out: a quantized tensor.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import dtype, float32, qint32
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.registry import aten as find
from rushlight.quantized.arithmetic import quantum_of_product
from rushlight.quantized.creation import check_zero_point
from rushlight.quantized.layout import like, make_quantized, one_scale
from rushlight.quantized.quantizer import (
    TensorQuantizer,
    by_table,
    dequantize,
    dequantize_rounding_once,
    limits,
    quantize_rounding_first,
    to_integers,
)
from rushlight.quantized.registration import aten, operator, quantized

Function = Callable[[Tensor], Tensor]
"""An elementwise function from float32 to float32."""


def mapped(
    source: Tensor, function: Function, scale: float | None = None, zero_point: int | None = None,
    dequantize: Callable = dequantize_rounding_once,
) -> Tensor:  # fmt: skip
    """Apply a function to each element; the result has the given scale and zero point, by default those of `source`."""
    held, kind = one_scale(source), source.dtype
    target = held if scale is None else TensorQuantizer(float(scale), int(zero_point))
    check_zero_point(target.zero_point, kind, "quantize_tensor_per_tensor_affine")

    def compute(integers: np.ndarray) -> np.ndarray:
        return _compute_in_float(integers, held, target, function, kind, dequantize)

    return make_quantized(by_table(source._impl.array, kind, compute), kind, target)


def _compute_in_float(
    integers: np.ndarray, held: TensorQuantizer, target: TensorQuantizer, function: Function, kind: dtype,
    dequantize: Callable,
) -> np.ndarray:  # fmt: skip
    numbers = tensor_from_array(np.atleast_1d(dequantize(integers, held.scale, held.zero_point)), float32)
    made = quantize_rounding_first(function(numbers)._impl.array, target.scale, target.zero_point, kind)
    return made.reshape(integers.shape)


def clipped(source: Tensor, low: float | None, high: float | None) -> Tensor:
    """Clamp the elements to bounds, which are first quantized like the tensor."""
    held, kind = one_scale(source), source.dtype
    bounds = [None if each is None else held.quantize(np.full((), each, np.float32), kind) for each in (low, high)]
    integers = source._impl.array
    if high is None and low is not None:
        return like(source, np.maximum(integers, bounds[0]))
    return like(source, np.clip(integers, *bounds))


def _in_place_variant(function: Callable) -> Callable:
    """Return the in-place variant of a kernel."""

    def write(self, *args, **kwargs):
        result = function(self, *args, **kwargs)
        self._impl.array[...] = result._impl.array
        self._impl.storage.quantizer = one_scale(result)
        return self

    return write


# Operators of the namespace aten


@quantized("relu")
def relu(self):
    return clipped(self, 0.0, None)


@quantized("relu6")
def relu6(self):
    return clipped(self, 0.0, 6.0)


@quantized("hardtanh", "clamp")
def clamp(self, min=None, max=None, *, min_val=None, max_val=None):
    return clipped(self, min if min_val is None else min_val, max if max_val is None else max_val)


@quantized("threshold")
def threshold(self, threshold, value):
    return mapped(self, lambda x: aten.threshold(x, threshold, value))


@operator("quantized::threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor qy")
def quantized_threshold(qx, threshold, value):
    return mapped(qx, lambda x: aten.threshold(x, threshold, value))


@quantized("leaky_relu")
def leaky_relu(self, negative_slope=0.01):
    return mapped(self, lambda x: aten.leaky_relu(x, negative_slope))


@quantized("gelu")
def gelu(self, *, approximate="none"):
    return mapped(self, lambda x: aten.gelu(x, approximate=approximate))


@quantized("prelu")
def prelu(self, weight):
    return quantized_prelu(self, weight, one_scale(self).scale, one_scale(self).zero_point)


def _define_bounded(name: str, reach: float, middle: bool) -> None:
    """Define a function with values in [0, 1] or [-1, 1], whose result has a fixed scale that covers this range."""
    general = find(name)

    def kernel(self):
        bits = 32 if self.dtype is qint32 else 8
        low, high = limits(self.dtype)
        return mapped(self, general, reach / 2.0**bits, (low + high + 1) // 2 if middle or bits > 8 else low)

    quantized(name)(kernel)


_define_bounded("sigmoid", 1.0, False)
_define_bounded("hardsigmoid", 1.0, False)
_define_bounded("tanh", 2.0, True)

for _name, _kernel in (("relu_", relu), ("hardtanh_", clamp), ("clamp_", clamp), ("leaky_relu_", leaky_relu)):
    quantized(_name)(_in_place_variant(_kernel))


# Operators of the namespace quantized


@operator("quantized::relu6(Tensor qx, bool inplace=False) -> Tensor")
def quantized_relu6(qx, inplace=False):
    return _in_place_variant(relu6)(qx) if inplace else relu6(qx)


@operator("quantized::clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy")
def quantized_clamp(qx, min=None, max=None):
    return clipped(qx, min, max)


@operator("quantized::hardswish(Tensor input, float output_scale, int output_zero_point) -> Tensor")
def hardswish(input, output_scale, output_zero_point):
    return mapped(input, aten.hardswish, output_scale, output_zero_point)


@operator("quantized::sigmoid(Tensor qx, float output_scale, int output_zero_point) -> Tensor")
def sigmoid(qx, output_scale, output_zero_point):
    return mapped(qx, aten.sigmoid, output_scale, output_zero_point, dequantize)


@operator(
    "quantized::leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, float output_scale, int output_zero_point) -> Tensor"
)
def quantized_leaky_relu(qx, negative_slope, inplace, output_scale, output_zero_point):
    return mapped(qx, lambda x: aten.leaky_relu(x, negative_slope), output_scale, output_zero_point)


@operator(
    "quantized::elu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1, Scalar scale=1, "
    "Scalar input_scale=1) -> Tensor"
)
def elu(self, output_scale, output_zero_point, alpha=1, scale=1, input_scale=1):
    return mapped(self, lambda x: aten.elu(x, alpha, scale, input_scale), output_scale, output_zero_point)


@operator("quantized::celu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1) -> Tensor")
def celu(self, output_scale, output_zero_point, alpha=1):
    return mapped(self, lambda x: aten.celu(x, alpha), output_scale, output_zero_point)


@operator("quantized::prelu(Tensor qx, Tensor weight, float output_scale, int output_zero_point) -> Tensor")
def quantized_prelu(qx, weight, output_scale, output_zero_point):
    """Multiply integers by the slope's, or where they are positive by the integer nearest to 1 at the slope's scale, and round
    once; so does ATen. Where no integer is exactly 1, positive numbers are scaled, too."""
    given, slope, target = one_scale(qx), one_scale(weight), TensorQuantizer(float(output_scale), int(output_zero_point))
    check_zero_point(target.zero_point, qx.dtype, "quantize_tensor_per_tensor_affine")
    channels = qx.shape[1] if qx.dim() > 1 else 1
    if weight.numel() not in (1, channels):
        raise RuntimeError(f"quantized::prelu: expected 1 slope, or {channels} for the channels, got {weight.numel()}")
    one = int(slope.quantize(np.ones((), np.float32), weight.dtype)) - slope.zero_point
    slopes = weight._impl.array.astype(np.int64).reshape(-1, *[1] * max(qx.dim() - 2, 0)) - slope.zero_point
    steps = qx._impl.array.astype(np.int64) - given.zero_point
    products = steps * np.where(steps > 0, one, slopes if slopes.size > 1 else slopes.reshape(()))
    factor = quantum_of_product(given.scale, slope.scale, target.scale)
    rounded = np.rint(products.astype(np.float32) * factor)
    return make_quantized(to_integers(rounded + np.float32(target.zero_point), qx.dtype), qx.dtype, target)


@operator(
    "quantized::dropout(Tensor self, float output_scale, int output_zero_point, Scalar p=0.5, bool training=False) -> Tensor"
)
def dropout(self, output_scale, output_zero_point, p=0.5, training=False):
    if training:
        raise RuntimeError("quantized::dropout is for inference: call eval() of the module")
    return self


@operator("quantized::softmax(Tensor qx, int dim, float output_scale, int output_zero_point) -> Tensor")
def softmax(qx, dim, output_scale, output_zero_point):
    made = aten.softmax(qx.dequantize(), dim)._impl.array
    target = TensorQuantizer(float(output_scale), int(output_zero_point))
    return make_quantized(target.quantize(made, qx.dtype), qx.dtype, target)
