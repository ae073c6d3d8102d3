"""CPU kernels of products with 8-bit and 4-bit integers."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import float32, float64, int32, uint8
from rushlight.ops.cpu.common import make, operand
from rushlight.ops.cpu.products import matrix_product
from rushlight.ops.meta.quantized import (
    check_dyn_quant_matmul,
    check_dyn_quant_pack,
    check_int4pack,
    check_int4pack_mm,
    check_int_mm,
    check_weight_int8pack_mm,
)
from rushlight.ops.registry import cpu


@cpu("_weight_int8pack_mm")
def weight_int8pack_mm(self, mat2, scales):
    check_weight_int8pack_mm(self, mat2, scales)
    weight = operand(mat2, float32)
    return make(matrix_product(operand(self, float32), weight.T) * operand(scales, float32), self.dtype)


@cpu("_int_mm")
def int_mm(self, mat2):
    check_int_mm(self, mat2)
    # Sums of products of bytes are exact in float64; results beyond int32 wrap around.
    exact = np.matmul(operand(self, float64), operand(mat2, float64))
    return make(exact.astype(np.int64).astype(np.int32), int32)


# 4-bit weights: a byte holds two integers, the first in its low half. Only these operators read packed bytes. In PyTorch the
# order of the bytes depends on the processor.


def _halves(packed: np.ndarray) -> np.ndarray:
    """Unpack bytes (..., n) to the integers 0 to 15, as uint8 (..., 2 n)."""
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)


@cpu("_convert_weight_to_int4pack_for_cpu")
def convert_weight_to_int4pack(self, innerKTiles):
    check_int4pack(self)
    integers = (self._impl.array & 15).astype(np.uint8)
    return make(integers[:, ::2] | integers[:, 1::2] << 4, uint8)


@cpu("_weight_int4pack_mm_for_cpu")
def weight_int4pack_mm(self, mat2, qGroupSize, qScaleAndZeros):
    check_int4pack_mm(self, mat2, qGroupSize, qScaleAndZeros)
    rows, scales = mat2._impl.array, operand(qScaleAndZeros, float32)
    integers = _halves(rows).astype(np.float32).reshape(len(rows), -1, qGroupSize) - 8
    scale, zero = (scales[..., position].T[:, :, None] for position in (0, 1))
    weight = (integers * scale + zero).reshape(len(rows), -1)
    return make(matrix_product(operand(self, float32), weight.T), self.dtype)


@cpu("_dyn_quant_pack_4bit_weight")
def dyn_quant_pack(weights, scales_zeros, bias, block_size, in_features, out_features):
    check_dyn_quant_pack(weights, scales_zeros, bias, block_size, in_features, out_features)
    parts = [each for each in (weights, scales_zeros, bias) if each is not None]
    return make(np.concatenate([operand(each, each.dtype).reshape(-1).astype(np.float32) for each in parts]), float32)


@cpu("_dyn_quant_matmul_4bit")
def dyn_quant_matmul(inp, packed_weights, block_size, in_features, out_features):
    sizes = check_dyn_quant_matmul(inp, packed_weights, block_size, in_features, out_features)
    packed, blocks = operand(packed_weights, float32), in_features // block_size
    ends = np.cumsum([out_features * in_features // 2, out_features * blocks])
    weights, scales, bias = np.split(packed, ends)
    integers = _halves(weights.astype(np.uint8).reshape(out_features, -1)).astype(np.float32) - 8
    weight = integers.reshape(out_features, blocks, block_size) * scales.reshape(out_features, blocks, 1)
    rows, inverse = _rounded_rows(operand(inp, float32).reshape(-1, in_features))
    made = matrix_product(rows, weight.reshape(out_features, in_features).T) * inverse
    return make((made + bias if bias.size else made).reshape(sizes), float32)


def _rounded_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows quantized to 8 bits by their range, minus their zero points, and their scales (rows, 1).

    The zero point is computed from the end of the range with the smaller error.
    """
    low, high = np.minimum(x.min(1, initial=0), 0)[:, None], np.maximum(x.max(1, initial=0), 0)[:, None]
    scale = np.where(low == high, np.float32(1), np.float32(255) / np.where(low == high, np.float32(1), high - low))
    from_low, from_high = -128 - low * scale, 127 - high * scale
    errors = (-128 + low * scale) + (127 + high * scale)
    zero_point = np.rint(np.clip(np.where(errors > 0, from_low, from_high), -128, 127))
    rounded = np.clip(np.trunc(x * scale + np.copysign(np.float32(0.5), x)) + zero_point, -128, 127)
    return (rounded - zero_point).astype(np.float32), 1 / scale
