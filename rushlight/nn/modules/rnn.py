"""Recurrent layers as modules: RNN, LSTM and GRU over padded, packed or single sequences."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from rushlight.core.following import runs_as_it_is
from rushlight.core.lazy_module import lazy_names
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.nn import init
from rushlight.nn.creation import new_parameter
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.rnn import PackedSequence
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """The base of recurrent layers: `num_layers` layers, in both directions if `bidirectional`.

    Input is (time, batch, input_size), (batch, time, input_size) if `batch_first`, (time, input_size), or a PackedSequence.
    `dropout` applies between layers. With `proj_size` an LSTM's output is mapped to that size. Raises TypeError or ValueError
    for invalid sizes, modes and probabilities.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout) if _is_probability(dropout) else dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options()
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                self._all_weights.append(self._make_weights(layer, f"_l{layer}{suffix}", device, dtype))
        self.reset_parameters()

    def _check_options(self) -> None:
        if not _is_probability(self.dropout):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={self.dropout} and num_layers={self.num_layers}",
                stacklevel=4,
            )
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            if not isinstance(value := getattr(self, name), kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size must be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {self.mode}")

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _output_size(self) -> int:
        return self.proj_size or self.hidden_size

    def _make_weights(self, layer: int, suffix: str, device, dtype) -> list[str]:
        """Register the weights of one layer and direction; returns their names."""
        rows = _GATES[self.mode] * self.hidden_size
        inputs = self.input_size if layer == 0 else self._output_size * self._directions
        shapes = {"weight_ih": [rows, inputs], "weight_hh": [rows, self._output_size]}
        if self.bias:
            shapes |= {"bias_ih": [rows], "bias_hh": [rows]}
        if self.proj_size:
            shapes["weight_hr"] = [self.proj_size, self.hidden_size]
        for name, shape in shapes.items():
            self.register_parameter(name + suffix, new_parameter(shape, device, dtype))
        return [name + suffix for name in shapes]

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: the weights need not be contiguous with each other here."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for names in self._all_weights for name in names]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        plain = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
                 "bidirectional": False}  # fmt: skip
        return text + "".join(f", {name}={getattr(self, name)}" for name in plain if getattr(self, name) != plain[name])

    # Checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise RuntimeError or ValueError unless the input's dtype, dimensions and features fit."""
        weight = self._flat_weights[0]
        # Under autocast the operators cast both to one dtype.
        casts = state.autocast is not None and state.autocast.enabled
        if input.dtype is not weight.dtype and not casts:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _expected_state(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, int, int]:
        batch = input.shape[0 if self.batch_first else 1] if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * self._directions, batch, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """(layers * directions, batch, output size): the shape of the hidden state."""
        return self._expected_state(input, batch_sizes, self._output_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise RuntimeError unless `hx` has the shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise RuntimeError or ValueError unless input and state fit the module and each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return the state with its sequences reordered."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # The state is one tensor here, and a pair of tensors in LSTM.

    def _parts(self, hx: Any) -> list[Tensor]:
        return [hx]

    def _state(self, parts: list[Tensor]) -> Any:
        return parts[0]

    def _zeros(self, input: Tensor, batch: int) -> Any:
        return input.new_zeros([self.num_layers * self._directions, batch, self._output_size])

    # Calling

    def _run(self, input: Tensor, hx: Any, batch_sizes: Tensor | None) -> tuple[Tensor, Any]:
        self.check_forward_args(input, hx, batch_sizes)
        packet = getattr(aten, self.mode.lower())
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            output, *state = packet.input(input, hx, *options, self.batch_first)
        else:
            output, *state = packet.data(input, batch_sizes, hx, *options)
        return output, self._state(state)

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple[Any, Any]:
        """Return the last layer's outputs in the form of `input`, and the final states (layers * directions, batch, size).

        `hx` holds the initial states, zeros if None. Raises RuntimeError or ValueError for shapes and dtypes that do
        not fit.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if input.dim() == 3:
            batch = input.shape[0 if self.batch_first else 1]
            return self._run(input, self._batched_state(input, hx, batch), None)
        position = 0 if self.batch_first else 1
        output, state = self._run(input.unsqueeze(position), self._unbatched_state(input, hx), None)
        return output.squeeze(position), self._state([part.squeeze(1) for part in self._parts(state)])

    @runs_as_it_is("how many sequences each step of a packed batch has is in a tensor", with_callees=True)
    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, order, inverse = packed
        state = self._zeros(data, batch_sizes[0].item()) if hx is None else self.permute_hidden(hx, order)
        output, state = self._run(data, state, batch_sizes)
        return PackedSequence(output, batch_sizes, order, inverse), self.permute_hidden(state, inverse)

    def _batched_state(self, input: Tensor, hx: Any, batch: int) -> Any:
        if hx is None:
            return self._zeros(input, batch)
        self._check_state_dims(hx, 3, "batched 3-D")
        return hx

    def _unbatched_state(self, input: Tensor, hx: Any) -> Any:
        if hx is None:
            return self._zeros(input, 1)
        self._check_state_dims(hx, 2, "unbatched 2-D")
        return self._state([part.unsqueeze(1) for part in self._parts(hx)])

    def _check_state_dims(self, hx: Any, dims: int, kind: str) -> None:
        if hx.dim() != dims:
            raise RuntimeError(f"For {kind} input, hx should also be {dims}-D but got {hx.dim()}-D tensor")


class RNN(RNNBase):
    """The RNN of Elman (1990): tanh or relu of the sum of both linear maps.

    Args:
        input_size (int): the features of the input.
        hidden_size (int): the features of the state.
        num_layers (int): the number of layers.
        nonlinearity (str): "tanh" or "relu".
        bias (bool): whether the layer has a learned bias.
        batch_first (bool): whether the batch is the first dimension, instead of the second.
        dropout (float): the probability of zeroing an element.
        bidirectional (bool): whether a second pass runs backwards in time.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.RNN(3, 2)(torch.ones(5, 1, 3))[0].shape
        torch.Size([5, 1, 2])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device=None,
        dtype=None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip


class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014).

    Args:
        input_size (int): the features of the input.
        hidden_size (int): the features of the state.
        num_layers (int): the number of layers.
        bias (bool): whether the layer has a learned bias.
        batch_first (bool): whether the batch is the first dimension, instead of the second.
        dropout (float): the probability of zeroing an element.
        bidirectional (bool): whether a second pass runs backwards in time.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.GRU(3, 2)(torch.ones(5, 1, 3))[0].shape
        torch.Size([5, 1, 2])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with projections if `proj_size` (Sak et al. 2014).

    Its state is a pair: hidden (layers * directions, batch, output size) and cell (..., hidden_size).

    Args:
        input_size (int): the features of the input.
        hidden_size (int): the features of the state.
        num_layers (int): the number of layers.
        bias (bool): whether the layer has a learned bias.
        batch_first (bool): whether the batch is the first dimension, instead of the second.
        dropout (float): the probability of zeroing an element.
        bidirectional (bool): whether a second pass runs backwards in time.
        proj_size (int): the features of the projected state; 0 for none.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.LSTM(3, 2)(torch.ones(5, 1, 3))[0].shape
        torch.Size([5, 1, 2])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """(layers * directions, batch, hidden_size): the shape of the cell state."""
        return self._expected_state(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        sizes = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        for index, (part, size) in enumerate(zip(hidden, sizes, strict=True)):
            self.check_hidden_size(part, size, f"Expected hidden[{index}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        return hx if permutation is None else tuple(part.index_select(1, permutation) for part in hx)

    def _parts(self, hx: Any) -> list[Tensor]:
        return list(hx)

    def _state(self, parts: list[Tensor]) -> Any:
        return tuple(parts)

    def _zeros(self, input: Tensor, batch: int) -> Any:
        count = self.num_layers * self._directions
        return tuple(input.new_zeros([count, batch, size]) for size in (self._output_size, self.hidden_size))

    def _check_state_dims(self, hx: Any, dims: int, kind: str) -> None:
        if any(part.dim() != dims for part in hx):
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {dims}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )


def _is_probability(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, bool) and 0 <= value <= 1


# PyTorch's module of this name also has these classes; they are imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.rnn_cells": ("GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"),
})  # fmt: skip
