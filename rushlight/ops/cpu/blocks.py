"""CPU kernels of operators on weights in blocks: they widen some rows at a time."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import float32, float64
from rushlight.ops.cpu.common import make, operand
from rushlight.ops.cpu.products import matrix_product
from rushlight.ops.meta.blocks import check_block_embedding, check_block_linear, check_blocks
from rushlight.ops.registry import cpu

_ELEMENTS_AT_ONCE = 1 << 20


@cpu("rushlight::block_linear")
def block_linear(input, blocks, format):
    layout, sizes = check_block_linear(input, blocks, format)
    held, width = blocks._impl.array, input._impl.sizes[-1]
    kind = float64 if input.dtype is float64 else float32
    left = operand(input, kind).reshape(-1, width)
    out = np.empty((len(left), len(held)), kind.numpy)
    step = max(_ELEMENTS_AT_ONCE // max(width, 1), 1)
    for first in range(0, len(held), step):
        out[:, first : first + step] = matrix_product(
            left, layout.dequantize(held[first : first + step]).astype(kind.numpy, copy=False).T
        )
    return make(out.reshape(sizes), input.dtype)


@cpu("rushlight::block_embedding")
def block_embedding(blocks, indices, format):
    layout, sizes = check_block_embedding(blocks, indices, format)
    held, places = blocks._impl.array, indices._impl.array
    if places.size and (places.min() < 0 or places.max() >= len(held)):
        raise IndexError(f"block_embedding: an index is out of range of the {len(held)} rows")
    return make(layout.dequantize(held[places.reshape(-1)]).reshape(sizes), float32)


@cpu("rushlight::dequantize_blocks")
def dequantize_blocks(blocks, format):
    layout, _ = check_blocks("dequantize_blocks", blocks, format, None)
    return make(layout.dequantize(blocks._impl.array), float32)
