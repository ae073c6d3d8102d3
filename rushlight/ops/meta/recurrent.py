"""Checks and Meta rules of the LSTM layer."""

from __future__ import annotations

from rushlight.core.dtype import float32, float64
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented, require_same_dtype
from rushlight.ops.meta.common import empty, like
from rushlight.ops.registry import meta

LSTM_MODE = 2


def check_layer(
    input: Tensor, weights: tuple[Tensor, Tensor, Tensor, Tensor], state: tuple[Tensor, Tensor], mode: int, num_layers: int
) -> tuple[int, int, int]:
    """Time steps, batch and hidden size; RuntimeError when the tensors do not fit, or it is no single LSTM layer."""
    if mode != LSTM_MODE or num_layers != 1:
        raise RuntimeError(f"mkldnn_rnn_layer: only one LSTM layer (mode 2) is supported, got mode {mode}, {num_layers} layers")
    if input.dim() != 3:
        raise RuntimeError(f"mkldnn_rnn_layer: expected input (time, batch, features), got {list(input.shape)}")
    if input.dtype not in (float32, float64):
        raise not_implemented("mkldnn_rnn_layer", input.dtype)
    steps, batch, features = input.shape
    hidden = weights[1].shape[-1]
    wanted = ([4 * hidden, features], [4 * hidden, hidden], [4 * hidden], [4 * hidden], [batch, hidden], [batch, hidden])
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
    # What the backward pass needs: the four gates and the cells of each step.
    sizes = (steps, batch, hidden), (batch, hidden), (batch, hidden), (steps, batch, 5 * hidden)
    return tuple(empty(size, input.dtype) for size in sizes)


@meta("mkldnn_rnn_layer_backward")
def mkldnn_rnn_layer_backward(input, weight1, weight2, weight3, weight4, hx_, cx_tmp, *rest):
    return tuple(like(tensor) for tensor in (input, weight1, weight2, weight3, weight4, hx_, cx_tmp))
