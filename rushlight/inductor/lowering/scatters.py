"""Lowering of sums of rows by index to a template."""

from __future__ import annotations

import math

from rushlight.core.dtype import float32
from rushlight.inductor.lowering.registry import lowering


@lowering("embedding_dense_backward")
def embedding_dense_backward(graph, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    count, columns = math.prod(indices.size), grad_output.size[-1]
    operands = {
        "rows": graph.strided_operand(grad_output, (count, columns), unit_dim=1),
        "index": graph.strided_operand(indices, (count,)),
    }
    return graph.template(
        "scatter_rows", (num_weights, columns), float32, num_weights, columns, operands, count=count, left_out=padding_idx
    )
