"""One step of a recurrent layer: Elman's RNN (1990), Hochreiter and Schmidhuber's LSTM (1997), Cho et al.'s GRU (2014).

In: a step's gates, as far as they depend on the input, and the state. Out: the new state. `project` computes the input's part
of the gates for all steps at once, so that a step has a single matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rushlight.core.tensor import Tensor
from rushlight.ops.composite.network.common import aten
from rushlight.ops.registry import composite

State = tuple[Tensor, ...]


class Weights(NamedTuple):
    """The parameters of a layer in one direction; `projection` makes an LSTM's output smaller than its cells."""

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    projection: Tensor | None = None


class Cell(NamedTuple):
    """`project(weights, input)` gives the gates; `stepper(weights)` gives the function from gates and state to state."""

    gates: int
    project: Callable[[Weights, Tensor], Tensor]
    stepper: Callable[[Weights], Callable[[Tensor, State], State]]


def _project_with_both_biases(weights: Weights, data: Tensor) -> Tensor:
    bias = None if weights.input_bias is None else weights.input_bias + weights.hidden_bias
    return aten.linear.default(data, weights.input, bias)


def _project(weights: Weights, data: Tensor) -> Tensor:
    return aten.linear.default(data, weights.input, weights.input_bias)


def _elman_stepper(name: str) -> Callable:
    def stepper(weights: Weights) -> Callable[[Tensor, State], State]:
        activation = getattr(aten, name).default
        recurrent = weights.hidden.t()
        return lambda gates, state: (activation(aten.addmm.default(gates, state[0], recurrent)),)

    return stepper


def _lstm_stepper(weights: Weights) -> Callable[[Tensor, State], State]:
    recurrent = weights.hidden.t()
    size = weights.hidden.shape[0] // 4
    shrink = None if weights.projection is None else weights.projection.t()

    def step(gates: Tensor, state: State) -> State:
        gates = aten.addmm.default(gates, state[0], recurrent)
        admit, forget = gates.narrow(1, 0, 2 * size).sigmoid().split([size, size], 1)
        cell = forget * state[1] + admit * gates.narrow(1, 2 * size, size).tanh()
        hidden = gates.narrow(1, 3 * size, size).sigmoid() * cell.tanh()
        return (hidden if shrink is None else aten.mm.default(hidden, shrink)), cell

    return step


def _gru_stepper(weights: Weights) -> Callable[[Tensor, State], State]:
    size = weights.hidden.shape[0] // 3

    def step(gates: Tensor, state: State) -> State:
        # The reset gate applies only to the hidden part of the candidate, so the input's part can't be added beforehand.
        hidden_gates = aten.linear.default(state[0], weights.hidden, weights.hidden_bias)
        both = gates.narrow(1, 0, 2 * size) + hidden_gates.narrow(1, 0, 2 * size)
        reset, update = both.sigmoid().split([size, size], 1)
        candidate = (gates.narrow(1, 2 * size, size) + reset * hidden_gates.narrow(1, 2 * size, size)).tanh()
        return (candidate + update * (state[0] - candidate),)

    return step


CELLS = {
    "rnn_tanh": Cell(1, _project_with_both_biases, _elman_stepper("tanh")),
    "rnn_relu": Cell(1, _project_with_both_biases, _elman_stepper("relu")),
    "lstm": Cell(4, _project_with_both_biases, _lstm_stepper),
    "gru": Cell(3, _project, _gru_stepper),
}


def _single_step(name: str, input: Tensor, state: State, weights: Weights) -> State:
    cell = CELLS[name]
    if input.dim() == 1:
        rows = _single_step(name, input.unsqueeze(0), tuple(part.unsqueeze(0) for part in state), weights)
        return tuple(part.squeeze(0) for part in rows)
    _check_step(input, state, weights, cell.gates)
    return cell.stepper(weights)(cell.project(weights, input), state)


def _check_step(input: Tensor, state: State, weights: Weights, gates: int) -> None:
    if (weights.input_bias is None) != (weights.hidden_bias is None):
        raise RuntimeError("Expected both b_ih and b_hh in a recurrent cell, or none of them, but got one")
    matrices = {"input": input, "w_ih": weights.input, "w_hh": weights.hidden}
    matrices |= {f"hidden{index}": part for index, part in enumerate(state)}
    for name, tensor in matrices.items():
        if tensor.dim() != 2:
            raise RuntimeError(f"Expected {name} of two dimensions in a recurrent cell, but got {list(tensor.shape)}")
    if input.shape[1] != weights.input.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {weights.input.shape[1]}")
    size = weights.hidden.shape[0] // gates
    for index, part in enumerate(state):
        if part.shape[1] != size:
            raise RuntimeError(f"hidden{index} has inconsistent hidden_size: got {part.shape[1]}, expected {size}")
        if part.shape[0] != input.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{index} batch size {part.shape[0]}"
            )


_CELL_WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


@composite(f"lstm_cell(Tensor input, Tensor[] hx, {_CELL_WEIGHTS}) -> (Tensor, Tensor)")
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Return one step of an LSTM: `hx` is the hidden and the cell state, (batch, hidden) each."""
    if len(hx) != 2:
        raise RuntimeError(f"lstm_cell expects two hidden states, got {len(hx)}")
    return _single_step("lstm", input, tuple(hx), Weights(w_ih, w_hh, b_ih, b_hh))


@composite(f"gru_cell(Tensor input, Tensor hx, {_CELL_WEIGHTS}) -> Tensor")
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Return one step of a GRU."""
    return _single_step("gru", input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


@composite(f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL_WEIGHTS}) -> Tensor")
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Compute tanh(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh)."""
    return _single_step("rnn_tanh", input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


@composite(f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL_WEIGHTS}) -> Tensor")
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Compute relu(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh)."""
    return _single_step("rnn_relu", input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]
