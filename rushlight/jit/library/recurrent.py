"""Recurrent layers in TorchScript's language: the methods of RNN, GRU, LSTM and the cells."""

from __future__ import annotations

from typing import Optional, Tuple  # noqa: UP035 (scripted code)

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten
from rushlight.nn.modules import rnn, rnn_cells
from rushlight.nn.utils.rnn import PackedSequence


def zeros(self, input: Tensor, size: int) -> Tensor:
    """Return an initial state for (time, batch, features) or (batch, time, features)."""
    directions = 2 if self.bidirectional else 1
    batch = input.size(0) if self.batch_first else input.size(1)
    return input.new_zeros([self.num_layers * directions, batch, size])


def check_sequence(self, input: Tensor) -> None:
    """Raise RuntimeError unless the features fit."""
    if input.dim() != 2 and input.dim() != 3:
        raise ValueError("Expected input to be 2D or 3D, got {}D instead".format(input.dim()))
    if input.size(-1) != self.input_size:
        raise RuntimeError(
            "input.size(-1) must be equal to input_size. Expected {}, got {}".format(self.input_size, input.size(-1))
        )


def zeros_for_packed(self, packed: PackedSequence, size: int) -> Tensor:
    """Return an initial state for a packed batch."""
    directions = 2 if self.bidirectional else 1
    return packed.data.new_zeros([self.num_layers * directions, int(packed.batch_sizes[0]), size])


def reordered(self, state: Tensor, order: Optional[Tensor]) -> Tensor:
    """Return a state with its sequences reordered."""
    if order is None:
        return state
    return state.index_select(1, order)


def rnn_packed(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
    self.check_sequence(input.data)
    if hx is None:
        hx = self.zeros_for_packed(input, self.hidden_size)
    else:
        hx = self.reordered(hx, input.sorted_indices)
    if self.mode == "GRU":
        output, state = aten.gru(
            input.data, input.batch_sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )
    elif self.mode == "RNN_TANH":
        output, state = aten.rnn_tanh(
            input.data, input.batch_sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )
    else:
        output, state = aten.rnn_relu(
            input.data, input.batch_sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )
    made = PackedSequence(output, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
    return made, self.reordered(state, input.unsorted_indices)


def lstm_packed(
    self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]] = None
) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
    self.check_sequence(input.data)
    if hx is None:
        projected = self.proj_size if self.proj_size > 0 else self.hidden_size
        hidden, cell = self.zeros_for_packed(input, projected), self.zeros_for_packed(input, self.hidden_size)
    else:
        hidden, cell = self.reordered(hx[0], input.sorted_indices), self.reordered(hx[1], input.sorted_indices)
    output, hidden, cell = aten.lstm(
        input.data, input.batch_sizes, [hidden, cell], self._flat_weights, self.bias, self.num_layers, self.dropout,
        self.training, self.bidirectional,
    )
    made = PackedSequence(output, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
    return made, (self.reordered(hidden, input.unsorted_indices), self.reordered(cell, input.unsorted_indices))


def rnn_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    self.check_sequence(input)
    place = 0 if self.batch_first else 1
    batched = input.dim() == 3
    if not batched:
        input = input.unsqueeze(place)
        if hx is not None:
            hx = hx.unsqueeze(1)
    if hx is None:
        hx = self.zeros(input, self.hidden_size)
    if self.mode == "GRU":
        output, state = aten.gru(
            input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
            self.batch_first,
        )
    elif self.mode == "RNN_TANH":
        output, state = aten.rnn_tanh(
            input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
            self.batch_first,
        )
    else:
        output, state = aten.rnn_relu(
            input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
            self.batch_first,
        )
    if batched:
        return output, state
    return output.squeeze(place), state.squeeze(1)


def lstm_forward(
    self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
    self.check_sequence(input)
    place = 0 if self.batch_first else 1
    batched = input.dim() == 3
    if not batched:
        input = input.unsqueeze(place)
    if hx is None:
        projected = self.proj_size if self.proj_size > 0 else self.hidden_size
        hidden, cell = self.zeros(input, projected), self.zeros(input, self.hidden_size)
    else:
        hidden, cell = hx
        if not batched:
            hidden, cell = hidden.unsqueeze(1), cell.unsqueeze(1)
    output, hidden, cell = aten.lstm(
        input, [hidden, cell], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
        self.bidirectional, self.batch_first,
    )
    if batched:
        return output, (hidden, cell)
    return output.squeeze(place), (hidden.squeeze(1), cell.squeeze(1))


def check_dims(self, value: Tensor, what: str) -> None:
    """Raise ValueError unless a value has one dimension or two."""
    if value.dim() != 1 and value.dim() != 2:
        raise ValueError("Expected {} to be 1D or 2D, got {}D instead".format(what, value.dim()))


def rnn_cell_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    self._check_dims(input, "input")
    if hx is None:
        hx = input.new_zeros(input.size()[:-1] + [self.hidden_size])
    else:
        self._check_dims(hx, "hidden")
    if self.nonlinearity == "tanh":
        return aten.rnn_tanh_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    elif self.nonlinearity == "relu":
        return aten.rnn_relu_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    raise RuntimeError("Unknown nonlinearity: {}".format(self.nonlinearity))


def gru_cell_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    self._check_dims(input, "input")
    if hx is None:
        hx = input.new_zeros(input.size()[:-1] + [self.hidden_size])
    else:
        self._check_dims(hx, "hidden")
    return aten.gru_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


def lstm_cell_forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
    self._check_dims(input, "input")
    if hx is None:
        hidden = input.new_zeros(input.size()[:-1] + [self.hidden_size])
        cell = hidden
    else:
        hidden, cell = hx
    return aten.lstm_cell(input, [hidden, cell], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


METHODS = {
    rnn.RNNBase: {
        "forward": rnn_forward, "forward__1": rnn_packed, "zeros": zeros, "check_sequence": check_sequence,
        "zeros_for_packed": zeros_for_packed, "reordered": reordered,
    },
    rnn.LSTM: {"forward": lstm_forward, "forward__1": lstm_packed},
    rnn_cells.RNNCellBase: {"_check_dims": check_dims},
    rnn_cells.RNNCell: {"forward": rnn_cell_forward},
    rnn_cells.GRUCell: {"forward": gru_cell_forward},
    rnn_cells.LSTMCell: {"forward": lstm_cell_forward},
}  # fmt: skip
