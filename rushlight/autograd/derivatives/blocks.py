"""Derivatives of products with block-quantized weights: the input has a gradient, the blocks have none."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.ops.packet import namespaces

blocks_of = namespaces.namespace("rushlight")

non_differentiable("rushlight::block_embedding", "rushlight::dequantize_blocks")


def _gradient_of_input(grad, blocks, format):
    return grad @ blocks_of.dequantize_blocks.default(blocks, format).to(grad.dtype)


derivative("rushlight::block_linear", input=_gradient_of_input)
