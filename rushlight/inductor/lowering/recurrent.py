"""Lowering of recurrent layers and their gradients: templates for the steps, which compute in float32, and matrix products for
the whole sequence.

A template writes its results one after the other into one buffer.
"""

from __future__ import annotations

import math

from rushlight.core.algebra import as_expr
from rushlight.core.dtype import float32
from rushlight.inductor.ir import Operand
from rushlight.inductor.lowering.builder import GraphBuilder
from rushlight.inductor.lowering.indexing import cat
from rushlight.inductor.lowering.pointwise import add
from rushlight.inductor.lowering.products import matrix_product
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.sizes import as_size
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.meta.recurrent import GRU_MODE, KINDS, LSTM_MODE

WORKSPACE = 3  # index of the result that the gradients read


def _in_one_piece(graph: GraphBuilder, box: TensorBox) -> Operand:
    return graph.row_major_operand(box) or graph.row_major_operand(graph.copy(box))


@lowering("mkldnn_rnn_layer")
def recurrent_layer(
    graph, input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, *options
):  # fmt: skip
    (steps, batch, features), kind = input.size, KINDS[mode]
    hidden = weight1.size[1]
    gates = matrix_product(graph, input.reshape((steps * batch, features)), _transpose(weight0))
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


@lowering("mkldnn_rnn_layer_backward")
def recurrent_layer_backward(
    graph, input, weight1, weight2, weight3, weight4, hx_, cx_tmp, output, hy_, cy_, grad_output, grad_hy, grad_cy, reverse,
    mode, hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, workspace,
):  # fmt: skip
    (steps, batch, features), kind, hidden = input.size, KINDS[mode], weight2.size[1]
    given = {"grad_output": grad_output, "grad_state": grad_hy, "state": hx_, "output": output}
    given |= {"grad_cell": grad_cy, "cell": cx_tmp} if mode == LSTM_MODE else {}
    given |= {"workspace": workspace} if kind.saved else {}
    operands = {name: _in_one_piece(graph, box) for name, box in given.items() if box is not None}
    operands["weight"] = graph.strided_operand(weight2, weight2.size)
    width, rows = kind.gates * hidden, steps * batch
    apart, carries = mode == GRU_MODE, mode in (GRU_MODE, LSTM_MODE)
    sizes = [(rows, width)] * (1 + apart) + [(batch, hidden)] * (1 + carries)
    total = sum(map(math.prod, sizes))
    made = graph.template(
        "recurrent_backward", (total,), float32, 1, total, operands, layer=kind.name, gates=kind.gates, steps=steps,
        batch=batch, hidden=hidden, reverse=bool(reverse), apart=apart, carries=carries, packed_once=False,
    )  # fmt: skip
    into_gates, *rest = made.sections(sizes)
    by_state, to_state = (rest[0] if apart else into_gates), rest[1 if apart else 0]
    bias = graph.reduction(into_gates, [0], "sum", float32, False)
    state_bias = graph.reduction(by_state, [0], "sum", float32, False) if apart else bias
    states = _states_before(graph, hx_, output, bool(reverse)).reshape((rows, hidden))
    return (
        matrix_product(graph, into_gates, weight1).reshape((steps, batch, features)),
        matrix_product(graph, _transpose(into_gates), input.reshape((rows, features))),
        matrix_product(graph, _transpose(by_state), states), bias, state_bias, to_state,
        rest[-1] if mode == LSTM_MODE else cx_tmp,
    )  # fmt: skip


def _transpose(box: TensorBox) -> TensorBox:
    return box.view(box.size[::-1], lambda index: [index[1], index[0]])


def _states_before(graph: GraphBuilder, first: TensorBox, output: TensorBox, reverse: bool) -> TensorBox:
    """Return the state before each step."""
    steps, *rest = output.size
    first = first.reshape((1, *rest))
    if type(steps) is int and steps == 1:
        return first
    begin = 1 if reverse else 0
    others = output.view((steps - 1, *rest), lambda index: [index[0] + begin, *index[1:]])
    return cat(graph, [others, first] if reverse else [first, others])
