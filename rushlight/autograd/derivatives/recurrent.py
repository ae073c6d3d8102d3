"""The derivative of an LSTM layer."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

_INPUTS = ("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_")


def _layer(
    grads, input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, num_layers,
    has_biases, bidirectional, batch_first, train, result0, result1, result2, result3,
):  # fmt: skip
    return aten.mkldnn_rnn_layer_backward.default(
        input, weight0, weight1, weight2, weight3, hx_, cx_, result0, result1, result2, grads[0], grads[1], grads[2], reverse,
        mode, hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, result3,
    )  # fmt: skip


def _twice():
    raise RuntimeError(
        "the derivative of 'mkldnn_rnn_layer_backward' is not implemented: an LSTM in float32 can be differentiated once; "
        "convert it to float64 for second derivatives"
    )


derivative("mkldnn_rnn_layer", _INPUTS, _layer, non_differentiable_outputs=(3,))
derivative("mkldnn_rnn_layer_backward", **dict.fromkeys(("input", "weight1", "weight2", "hx_", "cx_tmp", "grad_output",
                                                          "grad_hy", "grad_cy"), _twice))  # fmt: skip
