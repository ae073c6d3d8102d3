"""Lowering of recurrent layers: a product with the whole input, and a template for the steps, which calculates in float32.

The template's results lie one after the other in one buffer.
"""

from __future__ import annotations

import math

from rushlight.core.algebra import as_expr
from rushlight.core.dtype import float32
from rushlight.inductor.ir import Operand
from rushlight.inductor.lowering.builder import GraphBuilder
from rushlight.inductor.lowering.pointwise import add
from rushlight.inductor.lowering.products import matrix_product
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.sizes import as_size
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.meta.recurrent import GRU_MODE, KINDS, LSTM_MODE

WORKSPACE = 3  # the number of the result that the gradients read


def _in_one_piece(graph: GraphBuilder, box: TensorBox) -> Operand:
    return graph.row_major_operand(box) or graph.row_major_operand(graph.copy(box))


@lowering("mkldnn_rnn_layer")
def recurrent_layer(
    graph, input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, *options
):  # fmt: skip
    (steps, batch, features), kind = input.size, KINDS[mode]
    hidden = weight1.size[1]
    by_input = weight0.view((features, kind.gates * hidden), lambda index: [index[1], index[0]])
    gates = matrix_product(graph, input.reshape((steps * batch, features)), by_input)
    gates = add(graph, gates, weight2 if mode == GRU_MODE else add(graph, weight2, weight3))
    operands = {"gates": _in_one_piece(graph, gates), "weight": graph.strided_operand(weight1, weight1.size)}
    operands["state"] = _in_one_piece(graph, hx_)
    operands |= {"cell": _in_one_piece(graph, cx_)} if mode == LSTM_MODE else {}
    operands |= {"bias": _in_one_piece(graph, weight3)} if mode == GRU_MODE else {}
    cell = (batch, hidden) if mode == LSTM_MODE else (0,)
    saves = WORKSPACE in graph.items_used and kind.saved > 0
    sizes = [(steps, batch, hidden), cell, (steps, batch, kind.saved * hidden)][: 2 + saves]
    total = sum(map(math.prod, sizes))
    made = graph.template(
        "recurrent", (total,), float32, 1, total, operands, layer=kind.name, gates=kind.gates, steps=steps, batch=batch,
        hidden=hidden, reverse=bool(reverse), saves=saves,
        packed_once=graph.is_constant_buffer(operands["weight"].buffer),
    )  # fmt: skip
    output, last_cell, *workspace = made.sections(sizes)
    last = as_expr(0 if reverse else as_size(steps - 1))
    state = output.view((batch, hidden), lambda index: [last, *index])
    return output, state, last_cell, workspace[0] if saves else made.view((steps, batch, 0), lambda index: [0])
