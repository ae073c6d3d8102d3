"""CPU kernels of products with 8-bit integers."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import float32, float64, int32
from rushlight.ops.cpu.common import make, operand
from rushlight.ops.cpu.products import matrix_product
from rushlight.ops.meta.quantized import check_int_mm, check_weight_int8pack_mm
from rushlight.ops.registry import cpu


@cpu("_weight_int8pack_mm")
def weight_int8pack_mm(self, mat2, scales):
    check_weight_int8pack_mm(self, mat2, scales)
    weight = operand(mat2, float32)
    return make(matrix_product(operand(self, float32), weight.T) * operand(scales, float32), self.dtype)


@cpu("_int_mm")
def int_mm(self, mat2):
    check_int_mm(self, mat2)
    # Sums of products of bytes are exact in float64; what is beyond int32 wraps around.
    exact = np.matmul(operand(self, float64), operand(mat2, float64))
    return make(exact.astype(np.int64).astype(np.int32), int32)
