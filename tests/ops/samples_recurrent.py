"""Sample calls of the LSTM layer, forwards and against time."""

from __future__ import annotations

from rushlight.ops.registry import aten
from tests.ops.samples import group, real


@group
def _lstm_layer():
    for reverse in (False, True):
        tensors = [real(3, 2, 4), real(12, 4), real(12, 3), real(12), real(12), real(2, 3), real(2, 3)]
        yield "mkldnn_rnn_layer", *tensors, reverse, [], 2, 3, 1, True, False, False, True
        *results, workspace = aten("mkldnn_rnn_layer")(*tensors, reverse, [], 2, 3, 1, True, False, False, True)
        grads, options = [real(3, 2, 3), real(2, 3), None], (reverse, 2, 3, 1, True, True, False, [], False)
        yield "mkldnn_rnn_layer_backward", *tensors, *results, *grads, *options, workspace
