"""Sample calls of products with 8-bit integers."""

from __future__ import annotations

import numpy as np

import rushlight as rl
from rushlight.core.tensor import Tensor
from tests.ops.samples import group

_random = np.random.default_rng(11)


def _bytes(*shape: int) -> Tensor:
    return rl.from_numpy(_random.integers(-128, 128, shape).astype(np.int8))


def _single(*shape: int) -> Tensor:
    return rl.from_numpy(_random.uniform(-1, 1, shape).astype(np.float32))


@group
def _products():
    yield "_weight_int8pack_mm", _single(5, 32), _bytes(32, 32), _single(32)
    yield "_weight_int8pack_mm", _single(7, 3).T, _bytes(4, 7), _single(4)
    yield "_int_mm", _bytes(3, 8), _bytes(8, 5)
    yield "_int_mm", _bytes(8, 3).T, _bytes(5, 8).T


@group
def _products_of_4_bits():
    integers = rl.from_numpy(_random.integers(0, 16, (32, 64)).astype(np.int32))
    yield "_convert_weight_to_int4pack_for_cpu", integers, 1
    packed = rl._convert_weight_to_int4pack_for_cpu(integers, 1)
    yield "_weight_int4pack_mm_for_cpu", _single(5, 64), packed, 32, _single(2, 32, 2)
    weights, scales = rl.from_numpy(_random.integers(0, 256, (8, 32)).astype(np.uint8)), _single(8, 2)
    yield "_dyn_quant_pack_4bit_weight", weights, scales, _single(8), 32, 64, 8
    yield "_dyn_quant_pack_4bit_weight", weights, _single(8, 1), None, 64, 64, 8
    packed = rl._dyn_quant_pack_4bit_weight(weights, scales, _single(8), 32, 64, 8)
    yield "_dyn_quant_matmul_4bit", _single(3, 64), packed, 32, 64, 8
