"""Sample calls of recurrent layers, forward and in reverse."""

from __future__ import annotations

import itertools

from rushlight.ops.registry import aten
from tests.ops.samples import group, real


@group
def _layers():
    for (mode, gates), reverse in itertools.product(enumerate((1, 1, 4, 3)), (False, True)):
        width, cell = 3 * gates, real(2, 3) if mode == 2 else real(0)
        tensors = [real(3, 2, 4), real(width, 4), real(width, 3), real(width), real(width), real(2, 3), cell]
        options = (reverse, [], mode, 3, 1, True, False, False, True)
        yield "mkldnn_rnn_layer", *tensors, *options
        *results, workspace = aten("mkldnn_rnn_layer")(*tensors, *options)
        grads, options = [real(3, 2, 3), real(2, 3), None], (reverse, mode, 3, 1, True, True, False, [], False)
        yield "mkldnn_rnn_layer_backward", *tensors, *results, *grads, *options, workspace
