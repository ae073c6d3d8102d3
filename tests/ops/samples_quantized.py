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
