"""Primitives on block-quantized weights (`rushlight.core.blocks`): bytes (rows, bytes of a row), with the name of a layout."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

BLOCKS = """
block_linear(Tensor input, Tensor blocks, str format) -> Tensor
block_embedding(Tensor blocks, Tensor indices, str format) -> Tensor
dequantize_blocks(Tensor blocks, str format) -> Tensor
"""

define_primitives(BLOCKS, "rushlight")
