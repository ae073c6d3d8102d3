"""Shape checks and Meta rules of operators on block-quantized weights."""

from __future__ import annotations

from rushlight.core.blocks import BlockFormat, format_named
from rushlight.core.dtype import float32, int32, int64, uint8
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_blocks(name: str, blocks: Tensor, format: str, dims: int | None = 2) -> tuple[BlockFormat, int]:
    """Return the block layout, and the number of elements in a row; RuntimeError unless `blocks` are rows of whole blocks."""
    layout, impl = format_named(format), blocks._impl
    if impl.dtype is not uint8:
        raise RuntimeError(f"{name}: blocks are bytes (uint8), got {impl.dtype}")
    if dims is not None and len(impl.sizes) != dims:
        raise RuntimeError(f"{name}: expected blocks (rows, bytes of a row), got the shape {list(impl.sizes)}")
    if not impl.sizes or impl.sizes[-1] % layout.nbytes:
        raise RuntimeError(f"{name}: rows of {layout.name} are blocks of {layout.nbytes} bytes, got {list(impl.sizes)}")
    return layout, impl.sizes[-1] // layout.nbytes * layout.elements


def check_block_linear(input: Tensor, blocks: Tensor, format: str) -> tuple[BlockFormat, tuple]:
    """Return the block layout, and the shape of `input @ weight.T`; RuntimeError when sizes or dtypes do not fit."""
    layout, width = check_blocks("block_linear", blocks, format)
    impl = input._impl
    if not impl.dtype.is_floating_point:
        raise RuntimeError(f"block_linear: expected a floating input, got {impl.dtype}")
    if not impl.sizes or impl.sizes[-1] != width:
        raise RuntimeError(f"block_linear: expected an input (..., {width}) for rows of {width}, got {list(impl.sizes)}")
    return layout, (*impl.sizes[:-1], blocks._impl.sizes[0])


def check_block_embedding(blocks: Tensor, indices: Tensor, format: str) -> tuple[BlockFormat, tuple]:
    """Return the block layout, and the shape of the rows at `indices`; RuntimeError when sizes or dtypes do not fit."""
    layout, width = check_blocks("block_embedding", blocks, format)
    if indices._impl.dtype not in (int64, int32):
        raise RuntimeError(f"block_embedding: expected indices in int64 or int32, got {indices._impl.dtype}")
    return layout, (*indices._impl.sizes, width)


@meta("rushlight::block_linear")
def block_linear(input, blocks, format):
    return empty(check_block_linear(input, blocks, format)[1], input.dtype)


@meta("rushlight::block_embedding")
def block_embedding(blocks, indices, format):
    return empty(check_block_embedding(blocks, indices, format)[1], float32)


@meta("rushlight::dequantize_blocks")
def dequantize_blocks(blocks, format):
    _, width = check_blocks("dequantize_blocks", blocks, format, None)
    return empty((*blocks._impl.sizes[:-1], width), float32)
