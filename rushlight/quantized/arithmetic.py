"""Sums, products and concatenations of quantized tensors, with the result's scale and zero point given.

Each operand of a sum is dequantized, and the float32 result quantized, as ATen's kernels do. Multiplying a tensor by a number
changes only its scale: the result has the same integers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor
from rushlight.quantized import native
from rushlight.quantized.creation import check_zero_point, values_of
from rushlight.quantized.layout import make_quantized, one_scale
from rushlight.quantized.quantizer import (
    TensorQuantizer,
    dequantize_rounding_once,
    inverse_of,
    limits,
    quantize_rounding_first,
    to_integers,
)
from rushlight.quantized.registration import aten, operator


def requantized(values: np.ndarray, kind: dtype, scale: float, zero_point: int, relu: bool = False) -> Tensor:
    """Quantize float32 numbers; with `relu`, negative ones become 0."""
    check_zero_point(zero_point, kind, "quantize_tensor_per_tensor_affine")
    target = TensorQuantizer(float(scale), int(zero_point))
    values = np.maximum(values, 0, out=values) if relu else values
    return make_quantized(quantize_rounding_first(values, target.scale, target.zero_point, kind), kind, target)


def _check_pair(qa: Tensor, qb: Tensor, name: str) -> None:
    if qa.dtype is not qb.dtype:
        raise RuntimeError(f"{name}: both operands should have the same dtype, got {qa.dtype} and {qb.dtype}")
    one_scale(qa), one_scale(qb)


def _add(qa: Tensor, qb: Tensor, scale: float, zero_point: int, relu: bool) -> Tensor:
    check_zero_point(zero_point, qa.dtype, "quantize_tensor_per_tensor_affine")
    made = _combine_natively(native.ADD, qa, qb, inverse_of(scale), zero_point, relu)
    if made is not None:
        return make_quantized(made, qa.dtype, TensorQuantizer(float(scale), int(zero_point)))
    first, second = (
        dequantize_rounding_once(each._impl.array, one_scale(each).scale, one_scale(each).zero_point) for each in (qa, qb)
    )
    return requantized(first + second, qa.dtype, scale, zero_point, relu)


def _combine_natively(code: int, qa: Tensor, qb: Tensor, inverse: np.ndarray, zero_point: int, relu: bool) -> np.ndarray | None:
    pair = one_scale(qa), one_scale(qb)
    scales, zeros = ([getattr(each, name) for each in pair] for name in ("scale", "zero_point"))
    arrays = qa._impl.array, qb._impl.array
    return native.combine(code, arrays, scales, zeros, float(inverse), int(zero_point), relu)


def quantum_of_product(first: float, second: float, scale: float) -> np.float32:
    """Return the factor from products of integers to quanta of the result, with ATen's roundings: each step in float32."""
    return np.float32(first) * np.float32(second) * inverse_of(scale)


def _multiply(qa: Tensor, qb: Tensor, scale: float, zero_point: int, relu: bool) -> Tensor:
    """Return the product of the integers minus their zero points, with a single multiplier, as in ATen's kernel."""
    kind, pair = qa.dtype, (one_scale(qa), one_scale(qb))
    check_zero_point(zero_point, kind, "quantize_tensor_per_tensor_affine")
    quantum = quantum_of_product(pair[0].scale, pair[1].scale, scale)
    target = TensorQuantizer(float(scale), int(zero_point))
    made = _combine_natively(native.MULTIPLY, qa, qb, quantum, zero_point, relu)
    if made is not None:
        return make_quantized(made, kind, target)
    first, second = (each._impl.array.astype(np.int64) - held.zero_point for each, held in zip((qa, qb), pair, strict=True))
    products = (first * second).astype(np.float32)
    if relu:
        products = np.maximum(products, 0)
    return make_quantized(to_integers(np.rint(products * quantum).astype(np.float64) + target.zero_point, kind), kind, target)


def _define_pairs(name: str, function: Callable) -> None:
    for suffix, relu in (("", False), ("_relu", True)):

        def binary(qa, qb, scale, zero_point, relu=relu):
            _check_pair(qa, qb, name)
            return function(qa, qb, scale, zero_point, relu)

        def into(qa, qb, out, relu=relu):
            _check_pair(qa, qb, name)
            held = one_scale(out)
            return out.copy_(function(qa, qb, held.scale, held.zero_point, relu))

        operator(f"quantized::{name}{suffix}(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")(binary)
        for form in (f"{name}{suffix}_out", f"{name}{suffix}.out"):
            operator(f"quantized::{form}(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out")(into)


_define_pairs("add", _add)
_define_pairs("mul", _multiply)


# With a number


def _add_number(qa: Tensor, b: float, relu: bool) -> Tensor:
    """Keep the integers and shift the zero point, if the shifted zero point is in range; else use a wider scale."""
    held, kind = one_scale(qa), qa.dtype
    low, high = limits(kind)
    steps = round(float(b) / held.scale)
    moved = held.zero_point - steps
    if low <= moved <= high:
        made = make_quantized(qa._impl.array.copy("K"), kind, TensorQuantizer(held.scale, moved))
        return aten.relu(made) if relu else made
    if moved < low:
        target = TensorQuantizer((high - moved) / (high - low) * held.scale, low)
    else:
        target = TensorQuantizer((moved - low) / (high - low) * held.scale, high)
    shifted = TensorQuantizer(held.scale, moved)
    return requantized(shifted.dequantize(qa._impl.array), kind, target.scale, target.zero_point, relu)


def _multiply_number(qa: Tensor, b: float, relu: bool) -> Tensor:
    held, kind = one_scale(qa), qa.dtype
    low, high = limits(kind)
    b = float(b)
    if b > 0:
        made = make_quantized(qa._impl.array.copy("K"), kind, TensorQuantizer(held.scale * b, held.zero_point))
    elif b == 0:
        made = make_quantized(np.zeros_like(qa._impl.array), kind, TensorQuantizer(1.0, 0))
    else:
        mirrored = (low + high - qa._impl.array.astype(np.int64)).astype(kind.numpy)
        made = make_quantized(mirrored, kind, TensorQuantizer(held.scale * -b, low + high - held.zero_point))
    return aten.relu(made) if relu else made


def _define_with_numbers(name: str, function: Callable) -> None:
    for suffix, relu in (("", False), ("_relu", True)):

        def right(qa, b, relu=relu):
            return function(qa, b.item() if isinstance(b, Tensor) else b, relu)

        def left(b, qa, relu=relu):
            return function(qa, b, relu)

        operator(f"quantized::{name}{suffix}.Scalar(Tensor qa, Scalar b) -> Tensor qc")(right)
        operator(f"quantized::{name}{suffix}.Scalar2(Scalar b, Tensor qa) -> Tensor qc")(left)
        operator(f"quantized::{name}_scalar{suffix}(Tensor qa, Scalar b) -> Tensor qc")(right)
        operator(f"quantized::{name}_scalar{suffix}.Tensor(Tensor qa, Tensor b) -> Tensor qc")(right)


_define_with_numbers("add", _add_number)
_define_with_numbers("mul", _multiply_number)


# Concatenation and matrix products


def _concatenate(qx: list[Tensor], dim: int, target: TensorQuantizer, relu: bool) -> Tensor:
    kind = qx[0].dtype
    parts = []
    for each in qx:
        if each.dtype is not kind:
            raise RuntimeError(f"quantized::cat: all tensors must have the dtype of the first, {kind}; one has {each.dtype}")
        if one_scale(each) == target and not relu:
            parts.append(each._impl.array)
        else:
            parts.append(_rescale(each, target, relu))
    return make_quantized(np.concatenate(parts, dim), kind, target)


def _rescale(source: Tensor, target: TensorQuantizer, relu: bool) -> np.ndarray:
    """Return the integers that represent the numbers of `source` by the quantizer `target`."""
    held, integers = one_scale(source), source._impl.array
    inverse = float(inverse_of(target.scale))
    made = native.rescale(integers, held.scale, held.zero_point, inverse, target.zero_point, relu)
    if made is not None:
        return made
    values = values_of(source)
    return target.quantize(np.maximum(values, 0, out=values) if relu else values, source.dtype)


def _make_cat(relu: bool) -> Callable:
    def cat(qx, dim, scale, zero_point):
        if not qx:
            raise RuntimeError("quantized::cat: a list of at least one tensor is needed")
        first = one_scale(qx[0])
        target = TensorQuantizer(
            first.scale if scale is None else float(scale), first.zero_point if zero_point is None else int(zero_point)
        )
        return _concatenate(qx, dim, target, relu)

    return cat


def _make_cat_out(relu: bool) -> Callable:
    def cat(qx, dim, out):
        return out.copy_(_concatenate(qx, dim, one_scale(out), relu))

    return cat


for _suffix, _relu in (("", False), ("_relu", True)):
    operator(f"quantized::cat{_suffix}(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor")(_make_cat(_relu))
    operator(f"quantized::cat{_suffix}_out(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)")(_make_cat_out(_relu))


@operator("quantized::matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
def matmul(qa, qb, scale, zero_point):
    _check_pair(qa, qb, "matmul")
    check_zero_point(zero_point, qa.dtype, "quantize_tensor_per_tensor_affine")
    target = TensorQuantizer(float(scale), int(zero_point))
    return make_quantized(target.quantize(np.matmul(values_of(qa), values_of(qb)), qa.dtype), qa.dtype, target)
