"""Recurrent cells as modules: one step of an RNN, LSTM or GRU."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.nn import init
from rushlight.nn.creation import new_parameter
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class RNNCellBase(Module):
    """The base of the cells: the weights of the input and of the state, for `num_chunks` gates each."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = new_parameter([rows, input_size], device, dtype)
        self.weight_hh = new_parameter([rows, hidden_size], device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, new_parameter([rows], device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _check_dims(self, value: Tensor, what: str) -> None:
        if value.dim() not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected {what} to be 1D or 2D, got {value.dim()}D instead")

    def _initial(self, input: Tensor) -> Tensor:
        return input.new_zeros([*input.shape[:-1], self.hidden_size])

    def _weights(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh


class RNNCell(RNNCellBase):
    """tanh or relu of both linear maps: (batch, input_size) and (batch, hidden_size) to (batch, hidden_size).

    Args:
        input_size (int): the features of the input.
        hidden_size (int): the features of the state.
        bias (bool): whether the layer has a learned bias.
        nonlinearity (str): "tanh" or "relu".
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.RNNCell(3, 2)(torch.ones(1, 3)).shape
        torch.Size([1, 2])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the new state; RuntimeError for an unknown nonlinearity."""
        self._check_dims(input, "input")
        if hx is not None:
            self._check_dims(hx, "hidden")
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = aten.rnn_tanh_cell if self.nonlinearity == "tanh" else aten.rnn_relu_cell
        return cell.default(input, self._initial(input) if hx is None else hx, *self._weights())


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (batch, input_size) and the hidden and cell state to the new pair of states.

    Args:
        input_size (int): the features of the input.
        hidden_size (int): the features of the state.
        bias (bool): whether the layer has a learned bias.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.LSTMCell(3, 2)(torch.ones(1, 3))[0].shape
        torch.Size([1, 2])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the new hidden and cell state."""
        self._check_dims(input, "input")
        if hx is None:
            hx = (self._initial(input),) * 2
        for index, part in enumerate(hx):
            self._check_dims(part, f"hx[{index}]")
        return aten.lstm_cell.default(input, list(hx), *self._weights())


class GRUCell(RNNCellBase):
    """One step of a GRU: (batch, input_size) and (batch, hidden_size) to (batch, hidden_size).

    Args:
        input_size (int): the features of the input.
        hidden_size (int): the features of the state.
        bias (bool): whether the layer has a learned bias.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.GRUCell(3, 2)(torch.ones(1, 3)).shape
        torch.Size([1, 2])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the new state."""
        self._check_dims(input, "input")
        if hx is not None:
            self._check_dims(hx, "hidden")
        return aten.gru_cell.default(input, self._initial(input) if hx is None else hx, *self._weights())
