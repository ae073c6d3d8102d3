"""Linear layers with quantized weights: from quantized to quantized tensors, and on float32 tensors, quantized dynamically.

Products of the integers minus their zero points are summed exactly. The sums, plus the bias in their quanta, are multiplied by
the quotient of the scales and rounded half to even, as in ATen with fbgemm.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rushlight.core.dtype import dtype, float32, quint8
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.cpu import native
from rushlight.quantized.creation import check_zero_point
from rushlight.quantized.layout import make_quantized, one_scale
from rushlight.quantized.native import limits as limits_of
from rushlight.quantized.packed import LinearPackedParams
from rushlight.quantized.quantizer import TensorQuantizer, choose, limits
from rushlight.quantized.registration import ANY_BACKEND, CPU, aten, operator

_PACKED = "__torch__.torch.classes.quantized.LinearPackedParamsBase"


def rescaled(
    sums: np.ndarray, input_scale: float, scales: np.ndarray, bias: np.ndarray | None, target: TensorQuantizer, kind: dtype,
    relu: bool = False,
) -> np.ndarray:  # fmt: skip
    """Requantize sums of products. `scales` (of the weight) and `bias` broadcast against the sums."""
    quantum = np.float32(input_scale) * scales
    made = sums.astype(np.float32, copy=False)
    if bias is not None:
        made += bias / quantum
    made *= quantum / np.float32(target.scale)
    np.rint(made, out=made)
    made += target.zero_point
    low, high = limits(kind)
    return np.clip(made, max(low, target.zero_point) if relu else low, high, out=made).astype(kind.numpy)


def _exact_products(integers: np.ndarray, zero_point: int, packed: LinearPackedParams, reach: int) -> np.ndarray:
    """Return the sums of products, (rows, out features): exact integers, rounded to float32. `reach` bounds the inputs'
    distance from the zero point."""
    rows = integers.reshape(-1, integers.shape[-1]).astype(np.float32)
    rows -= zero_point
    parts = packed.exact_parts(reach)
    if len(parts) == 1:
        return _product(rows, parts[0][1])
    return summed(_product(rows[:, part], weight) for part, weight in parts)


def _product(rows: np.ndarray, weight: Tensor) -> np.ndarray:
    """Compute rows @ weight.T by the kernel of linear layers."""
    return aten.linear(tensor_from_array(rows, float32), weight)._impl.array


def reach_of(integers: np.ndarray, zero_point: int) -> int:
    """Return the maximal distance of a dtype's integers from the zero point."""
    info = np.iinfo(integers.dtype)
    return max(zero_point - int(info.min), int(info.max) - zero_point)


def summed(parts: Iterator[np.ndarray]) -> np.ndarray:
    """Return the sum of exact integers in float32, rounded once."""
    total = next(parts).astype(np.float64)
    for part in parts:
        total += part
    return total.astype(np.float32)


def _check_input(x: Tensor, packed: object, name: str) -> LinearPackedParams:
    packed = unwrapped(packed, LinearPackedParams, name)
    if x.dim() == 0 or x.size(-1) != packed.weight.size(1):
        raise RuntimeError(
            f"quantized::{name}: The number of rows in the packed weight ({packed.weight.size(1)}) must be the last size of "
            f"the input, which has shape {list(x.shape)}"
        )
    return packed


def unwrapped(packed: object, kind: type, name: str) -> object:
    """Return packed weights, also if they are inside an object of scripted code."""
    held = getattr(packed, "held", packed)
    if not isinstance(held, kind):
        raise RuntimeError(f"quantized::{name} takes packed weights of {kind.class_name}, got {type(held).__name__}")
    return held


def linear(x: Tensor, packed: object, scale: float, zero_point: int, relu: bool, name: str) -> Tensor:
    """Apply a quantized linear layer: x (..., in features), quint8 or qint8, to (..., out features) of the same dtype."""
    packed, held = _check_input(x, packed, name), one_scale(x)
    if packed.is_float16:
        raise RuntimeError(f"quantized::{name}: the weight is in float16; it is for linear_dynamic_fp16")
    check_zero_point(zero_point, x.dtype, "quantize_tensor_per_tensor_affine")
    target = TensorQuantizer(float(scale), int(zero_point))
    made = _apply_natively(x._impl.array, held, packed, relu, target)
    if made is not None:
        return make_quantized(made, x.dtype, target)
    sums = _exact_products(x._impl.array, held.zero_point, packed, reach_of(x._impl.array, held.zero_point))
    made = rescaled(sums, held.scale, packed.scales, packed.bias_array, target, x.dtype, relu)
    return make_quantized(made.reshape(*x.shape[:-1], made.shape[-1]), x.dtype, target)


def _apply_natively(
    integers: np.ndarray, held: TensorQuantizer, packed: LinearPackedParams, relu: bool, target: TensorQuantizer | None = None
) -> np.ndarray | None:
    """Apply a layer to bytes by a native kernel, to bytes of `target`, or to float32 if None; None if no kernel supports it."""
    rows = native.contiguous(integers).reshape(1, 1, -1, integers.shape[-1])
    made = packed.applied(rows, rows.shape[1:3], integers.dtype, held, target, relu)
    return None if made is None else made.reshape(*integers.shape[:-1], made.shape[-1])


def linear_dynamic(x: np.ndarray, packed: LinearPackedParams, reduce_range: bool, relu: bool = False) -> np.ndarray:
    """Apply a layer to a float32 array (..., in features), which is quantized dynamically to 8 bits (7 if `reduce_range`)."""
    largest = 127 if reduce_range else 255
    held = TensorQuantizer(*choose(*limits_of(x), 0, largest))
    made = _apply_natively(held.quantize(x, quint8), held, packed, relu)
    return _dynamic_by_parts(x, packed, held, largest, relu) if made is None else made


def _dynamic_by_parts(
    x: np.ndarray, packed: LinearPackedParams, held: TensorQuantizer, largest: int, relu: bool
) -> np.ndarray:  # fmt: skip
    """Apply the dynamic layer without a native kernel."""
    reach = 255  # rounded up to one of two values, because the weight's parts are cached per value
    if max(held.zero_point, largest - held.zero_point) < 128:
        reach = 128
    sums = _exact_products(held.quantize(x, quint8), held.zero_point, packed, reach).astype(np.float32, copy=False)
    sums *= np.float32(held.scale) * packed.scales
    if packed.bias_array is not None:
        sums += packed.bias_array
    sums = np.maximum(sums, 0, out=sums) if relu else sums
    return sums.reshape(*x.shape[:-1], sums.shape[-1])


def linear_float16(x: np.ndarray, packed: LinearPackedParams, relu: bool = False) -> np.ndarray:
    """Apply a layer whose weight was rounded to float16 to a float32 array."""
    made = _product(x.reshape(-1, x.shape[-1]), packed.weight)
    if packed.bias_array is not None:
        made += packed.bias_array
    made = np.maximum(made, 0, out=made) if relu else made
    return made.reshape(*x.shape[:-1], made.shape[-1])


def _check_float_input(x: Tensor, name: str) -> np.ndarray:
    if x.dtype is not float32:
        raise RuntimeError(f"quantized::{name}: expected a float32 input, got {x.dtype}")
    return x.detach()._impl.array


def _define(suffix: str, relu: bool) -> None:
    name = f"linear{suffix}"

    def static(X, W_prepack, Y_scale_i, Y_zero_point_i):
        return linear(X, W_prepack, Y_scale_i, Y_zero_point_i, relu, name)

    def dynamic(X, W_prepack, reduce_range=False):
        packed, x = _check_input(X, W_prepack, f"{name}_dynamic"), _check_float_input(X, f"{name}_dynamic")
        made = linear_float16(x, packed, relu) if packed.is_float16 else linear_dynamic(x, packed, reduce_range, relu)
        return tensor_from_array(made, float32)

    def in_halves(X, W_prepack):
        packed = _check_input(X, W_prepack, f"{name}_dynamic_fp16")
        return tensor_from_array(linear_float16(_check_float_input(X, f"{name}_dynamic_fp16"), packed, relu), float32)

    operator(f"quantized::{name}(Tensor X, {_PACKED} W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y")(static)
    operator(f"quantized::{name}_dynamic(Tensor X, {_PACKED} W_prepack, bool reduce_range=False) -> Tensor Y", keys=(CPU,))(
        dynamic
    )
    operator(f"quantized::{name}_dynamic_fp16(Tensor X, {_PACKED} W_prepack) -> Tensor Y", keys=(CPU,))(in_halves)


_define("", False)
_define("_relu", True)


@operator(
    f"quantized::linear_leaky_relu(Tensor X, {_PACKED} W_prepack, float Y_scale_i, int Y_zero_point_i, float negative_slope) "
    "-> Tensor Y"
)
def linear_leaky_relu(X, W_prepack, Y_scale_i, Y_zero_point_i, negative_slope):
    return aten.leaky_relu(linear(X, W_prepack, Y_scale_i, Y_zero_point_i, False, "linear_leaky_relu"), negative_slope)


@operator("quantized::linear_prepack(Tensor W, Tensor? B=None) -> " + _PACKED + " W_prepack")
def linear_prepack(W, B=None):
    return LinearPackedParams(W, B)


@operator("quantized::linear_prepack_fp16(Tensor W, Tensor? B=None) -> " + _PACKED + " W_prepack", keys=(CPU,))
def linear_prepack_fp16(W, B=None):
    return LinearPackedParams(W, B)


@operator(
    f"quantized::linear_unpack({_PACKED} W_prepack) -> (Tensor W_origin, Tensor? B_origin)",
    f"quantized::linear_unpack_fp16({_PACKED} W_prepack) -> (Tensor W_origin, Tensor? B_origin)",
    keys=(ANY_BACKEND,),
)
def linear_unpack(W_prepack):
    return unwrapped(W_prepack, LinearPackedParams, "linear_unpack").unpack()
