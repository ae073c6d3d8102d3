"""The derivative of a fused recurrent layer. With create_graph, it differentiates the layer step by step instead."""

from __future__ import annotations

from rushlight.autograd.backward import grad
from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.refused import refuse
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.composite.network.recurrent import by_steps
from rushlight.ops.composite.network.recurrent_cells import Weights
from rushlight.ops.meta.recurrent import KINDS, LSTM_MODE
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

_INPUTS = ("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_")


def _differentiate_layer(
    grads, input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, num_layers,
    has_biases, bidirectional, batch_first, train, result0, result1, result2, result3,
):  # fmt: skip
    if state.grad_enabled:
        return _differentiable_gradients(grads, (input, weight0, weight1, weight2, weight3, hx_, cx_), bool(reverse), mode)
    return aten.mkldnn_rnn_layer_backward.default(
        input, weight0, weight1, weight2, weight3, hx_, cx_, result0, result1, result2, grads[0], grads[1], grads[2], reverse,
        mode, hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, result3,
    )  # fmt: skip


def _differentiable_gradients(grads: tuple, inputs: tuple[Tensor, ...], reverse: bool, mode: int) -> tuple[Tensor | None, ...]:
    """Return gradients with history, for double backward."""
    # one input may depend on another; the alias makes gradients stop at this input
    leaves = [aten.alias.default(value) for value in inputs]
    data, *weights, hidden, cell = leaves
    initial = (hidden, cell) if mode == LSTM_MODE else (hidden,)
    output, final = by_steps(KINDS[mode].name, data, None, initial, Weights(*weights), reverse)
    pairs = [(value, given) for value, given in zip((output, *final), grads, strict=False) if given is not None]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    values, given = ([pair[position] for pair in pairs] for position in (0, 1))
    found = iter(grad(values, wanted, given, create_graph=True, allow_unused=True))
    return tuple(next(found) if leaf.requires_grad else None for leaf in leaves)


_refuse_double_backward = refuse(
    "the derivative of 'mkldnn_rnn_layer_backward' is not implemented; differentiate mkldnn_rnn_layer twice instead"
)
derivative("mkldnn_rnn_layer", _INPUTS, _differentiate_layer, non_differentiable_outputs=(3,))
derivative("mkldnn_rnn_layer_backward", **dict.fromkeys(("input", "weight1", "weight2", "hx_", "cx_tmp", "grad_output",
                                                          "grad_hy", "grad_cy"), _refuse_double_backward))  # fmt: skip
