"""Checks and Meta rules of recurrent layers."""

from __future__ import annotations

from typing import NamedTuple

from rushlight.core.dtype import float32, float64
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented, require_same_dtype
from rushlight.ops.meta.common import empty, like
from rushlight.ops.registry import meta


class Kind(NamedTuple):
    """A kind of layer: its number of gates, and the values per hidden unit and step that the backward pass saves."""

    name: str
    gates: int
    saved: int


# torch's numbers of the modes.
RELU_MODE, TANH_MODE, LSTM_MODE, GRU_MODE = range(4)
KINDS = (Kind("rnn_relu", 1, 0), Kind("rnn_tanh", 1, 0), Kind("lstm", 4, 5), Kind("gru", 3, 4))


def check_layer(
    input: Tensor, weights: tuple[Tensor, Tensor, Tensor, Tensor], state: tuple[Tensor, Tensor], mode: int, num_layers: int
) -> tuple[int, int, int]:
    """Time steps, batch and hidden size; RuntimeError when the tensors do not fit, or for several layers."""
    if not 0 <= mode < len(KINDS) or num_layers != 1:
        raise RuntimeError(
            f"mkldnn_rnn_layer: expected a mode from 0 to {len(KINDS) - 1} and one layer, got mode {mode}, {num_layers} layers"
        )
    if input.dim() != 3 or weights[1].dim() != 2:
        raise RuntimeError(
            f"mkldnn_rnn_layer: expected input (time, batch, features) and weights of two dimensions, got {list(input.shape)} "
            f"and {list(weights[1].shape)}"
        )
    if input.dtype not in (float32, float64):
        raise not_implemented("mkldnn_rnn_layer", input.dtype)
    steps, batch, features = input.shape
    hidden, gates = weights[1].shape[-1], KINDS[mode].gates
    cell = [batch, hidden] if mode == LSTM_MODE else [0]
    size = gates * hidden
    wanted = ([size, features], [size, hidden], [size], [size], [batch, hidden], cell)
    names = ("weight0", "weight1", "weight2", "weight3", "hx_", "cx_")
    for name, tensor, shape in zip(names, (*weights, *state), wanted, strict=True):
        if list(tensor.shape) != shape:
            raise RuntimeError(f"mkldnn_rnn_layer: expected {name} of shape {shape}, got {list(tensor.shape)}")
        require_same_dtype("mkldnn_rnn_layer", input.dtype, **{name: tensor})
    return steps, batch, hidden


@meta("mkldnn_rnn_layer")
def mkldnn_rnn_layer(
    input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, num_layers, *options
):  # fmt: skip
    weights = (weight0, weight1, weight2, weight3)
    steps, batch, hidden = check_layer(input, weights, (hx_, cx_), mode, num_layers)
    cell = (batch, hidden) if mode == LSTM_MODE else (0,)
    sizes = (steps, batch, hidden), (batch, hidden), cell, (steps, batch, KINDS[mode].saved * hidden)
    return tuple(empty(size, input.dtype) for size in sizes)


@meta("mkldnn_rnn_layer_backward")
def mkldnn_rnn_layer_backward(input, weight1, weight2, weight3, weight4, hx_, cx_tmp, *rest):
    return tuple(like(tensor) for tensor in (input, weight1, weight2, weight3, weight4, hx_, cx_tmp))
