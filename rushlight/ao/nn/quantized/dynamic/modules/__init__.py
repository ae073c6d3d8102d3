"""Layers on float tensors with quantized weights."""

from rushlight.ao.nn.quantized.dynamic.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from rushlight.ao.nn.quantized.dynamic.modules.linear import Linear
from rushlight.ao.nn.quantized.dynamic.modules.rnn import GRU, LSTM
from rushlight.ao.nn.quantized.dynamic.modules.rnn_cells import GRUCell, LSTMCell, RNNCell

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "GRU", "GRUCell", "LSTM", "LSTMCell",
    "Linear", "RNNCell",
]  # fmt: skip
