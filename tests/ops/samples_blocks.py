"""Sample calls of operators on block-quantized weights."""

from __future__ import annotations

import numpy as np

import rushlight as rl
from rushlight.core.blocks import FORMATS
from rushlight.core.tensor import Tensor
from tests.ops.samples import group

_random = np.random.default_rng(12)


def _numbers(*shape: int) -> np.ndarray:
    return _random.uniform(-1, 1, shape).astype(np.float32)


def _blocks(name: str, *shape: int) -> Tensor:
    return rl.from_numpy(FORMATS[name].quantize(_numbers(*shape)))


@group
def _block_operators():
    for name, layout in FORMATS.items():
        width = 2 * layout.elements
        yield "rushlight::block_linear", rl.from_numpy(_numbers(3, width)), _blocks(name, 5, width), name
        yield "rushlight::block_embedding", _blocks(name, 5, width), rl.tensor([[0, 4], [2, 2]]), name
        yield "rushlight::dequantize_blocks", _blocks(name, 3, 2, width), name
    yield "rushlight::block_linear", rl.from_numpy(_numbers(2, 3, 32)), _blocks("q8_0", 4, 32), "q8_0"
