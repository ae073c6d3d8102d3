"""CPU kernels for block-quantized weights: native, or in NumPy by decoding some rows at a time.

Native products first quantize rows of the input to bytes, as compiled ones do (`block_gemm.h`).
"""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.blocks import BlockFormat
from rushlight.core.dtype import float32, float64
from rushlight.ops.cpu import native
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
    left = operand(input, kind).reshape(math.prod(input._impl.sizes[:-1]), width)
    out = np.empty((len(left), len(held)), kind.numpy)
    if kind is float64 or not _native_product(out, left, held, layout):
        step = max(_ELEMENTS_AT_ONCE // max(width, 1), 1)
        for first in range(0, len(held), step):
            widened = layout.dequantize(held[first : first + step]).astype(kind.numpy, copy=False)
            out[:, first : first + step] = matrix_product(left, widened.T)
    return make(out.reshape(sizes), input.dtype)


def _native_product(out: np.ndarray, left: np.ndarray, held: np.ndarray, layout: BlockFormat) -> bool:
    if native.kernels is None:
        return False
    return native.kernels.block_product(out, np.ascontiguousarray(left), np.ascontiguousarray(held), layout.number)


def _elements(held: np.ndarray, layout: BlockFormat) -> np.ndarray:
    """Return rows of bytes (..., bytes) decoded to float32."""
    rows = np.ascontiguousarray(held.reshape(math.prod(held.shape[:-1]), held.shape[-1]))
    width = held.shape[-1] // layout.nbytes * layout.elements
    out = np.empty((len(rows), width), np.float32)
    if native.kernels is None or not native.kernels.block_elements(out, rows, layout.number):
        out = layout.dequantize(rows)
    return out.reshape(*held.shape[:-1], width)


@cpu("rushlight::block_embedding")
def block_embedding(blocks, indices, format):
    layout, sizes = check_block_embedding(blocks, indices, format)
    held, positions = blocks._impl.array, indices._impl.array
    if positions.size and (positions.min() < 0 or positions.max() >= len(held)):
        raise IndexError(f"block_embedding: an index is out of range of the {len(held)} rows")
    return make(_elements(held[positions.reshape(-1)], layout).reshape(sizes), float32)


@cpu("rushlight::dequantize_blocks")
def dequantize_blocks(blocks, format):
    layout, _ = check_blocks("dequantize_blocks", blocks, format, None)
    return make(_elements(blocks._impl.array, layout), float32)
