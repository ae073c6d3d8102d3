"""Lowering of operators on block-quantized weights, which stay packed."""

from __future__ import annotations

import math

from rushlight.core.blocks import format_named
from rushlight.core.dtype import float32, float64
from rushlight.inductor.ir import Constant, Operand
from rushlight.inductor.lowering.indexing import embedding
from rushlight.inductor.lowering.products import in_float32, in_type, matrix_product
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.tensor_box import TensorBox


def _rows(graph, blocks: TensorBox) -> Operand:
    """Return an operand whose rows of bytes are contiguous."""
    return graph.strided_operand(blocks, blocks.size, unit_dim=1)


@lowering("rushlight::block_linear")
def block_linear(graph, input, blocks, format):
    layout = format_named(format)
    lead = input.size[:-1]
    rows, columns = math.prod(lead), blocks.size[0]
    depth = blocks.size[1] // layout.nbytes * layout.elements
    if not (rows and columns and depth):
        return graph.pointwise((*lead, columns), input.dtype, lambda index: Constant(input.dtype, 0.0))
    if input.dtype is float64:
        dense = in_type(graph, dequantize_blocks(graph, blocks, format), float64)
        turned = dense.view((depth, columns), lambda index: [index[1], index[0]])
        return matrix_product(graph, input.reshape((rows, depth)), turned).reshape((*lead, columns))
    flat = in_float32(graph, input).reshape((rows, depth))
    operands = {"a": graph.strided_operand(flat, (rows, depth)), "b": _rows(graph, blocks)}
    made = graph.template("block_gemm", (rows, columns), float32, rows, columns, operands, depth=depth, layout=layout.name)
    return in_type(graph, made.reshape((*lead, columns)), input.dtype)


@lowering("rushlight::block_embedding")
def block_embedding(graph, blocks, indices, format):
    return dequantize_blocks(graph, graph.realize(embedding(graph, blocks, indices)), format)


@lowering("rushlight::dequantize_blocks")
def dequantize_blocks(graph, blocks, format):
    layout = format_named(format)
    *lead, nbytes = blocks.size
    rows, width = math.prod(lead), nbytes // layout.nbytes * layout.elements
    if not (rows and width):
        return graph.pointwise((*lead, width), float32, lambda index: Constant(float32, 0.0))
    operands = {"b": _rows(graph, blocks.reshape((rows, nbytes)))}
    made = graph.template("block_rows", (rows, width), float32, rows, width, operands, layout=layout.name)
    return made.reshape((*lead, width))
