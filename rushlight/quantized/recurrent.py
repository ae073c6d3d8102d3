"""Recurrent layers and cells with quantized weights, on float32 inputs and states.

In: inputs, states and packed cells, one per layer and direction. Out: float32 outputs and states. Each step quantizes the input
(all steps of a layer at once) and the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.quantized.linear import linear_dynamic, linear_float16, unwrapped
from rushlight.quantized.packed import CellParams, LinearPackedParams
from rushlight.quantized.registration import ANY_BACKEND, CPU, aten, operator

_CELL = "__torch__.torch.classes.rnn.CellParamsBase"
_PACKED = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
State = tuple[np.ndarray, ...]
Step = Callable[[np.ndarray, State, CellParams], State]
"""(products with the input (batch, gates), state, parameters) -> next state, whose first array is the output."""


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.float32(0.5) * (np.tanh(np.float32(0.5) * x) + np.float32(1))


def _product(x: np.ndarray, layer: LinearPackedParams, reduce_range: bool) -> np.ndarray:
    if x.ndim == 0 or x.shape[-1] != layer.weight.size(1):
        raise RuntimeError(f"quantized cell: expected vectors of {layer.weight.size(1)} elements, got shape {list(x.shape)}")
    return linear_float16(x, layer) if layer.is_float16 else linear_dynamic(x, layer, reduce_range)


def _product_with_state(state: np.ndarray, cell: CellParams) -> np.ndarray:
    return _product(state, cell.state_layer, cell.reduce_range)


def lstm_step(products: np.ndarray, state: State, cell: CellParams) -> State:
    """Compute one step of an LSTM: gates in the order input, forget, cell, output."""
    hidden, memory = state
    take, forget, new, show = np.split(_product_with_state(hidden, cell) + products, 4, -1)
    memory = _sigmoid(forget) * memory + _sigmoid(take) * np.tanh(new)
    return _sigmoid(show) * np.tanh(memory), memory


def gru_step(products: np.ndarray, state: State, cell: CellParams) -> State:
    """Compute one step of a GRU: gates in the order reset, update, new."""
    (hidden,) = state
    given, held = np.split(products, 3, -1), np.split(_product_with_state(hidden, cell), 3, -1)
    reset, update = _sigmoid(given[0] + held[0]), _sigmoid(given[1] + held[1])
    new = np.tanh(given[2] + held[2] * reset)
    return ((hidden - new) * update + new,)


def _make_plain_step(activation: Callable[[np.ndarray], np.ndarray]) -> Step:
    def step(products: np.ndarray, state: State, cell: CellParams) -> State:
        return (activation(_product_with_state(state[0], cell) + products),)

    return step


def _run_direction(x: np.ndarray, state: State, cell: CellParams, step: Step, sizes: Sequence[int], backwards: bool) -> tuple:
    """Run a layer in one direction over a packed sequence, whose rows are those of all steps; step i has `sizes[i]` rows, in
    decreasing order.

    Out: the outputs, packed in the same way, and the last state of each sequence.
    """
    products = _product(x, cell.input_layer, cell.reduce_range)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    outputs = np.empty((len(x), state[0].shape[-1]), np.float32)
    state = tuple(each.copy() for each in state)
    for time in reversed(range(len(sizes))) if backwards else range(len(sizes)):
        active = sizes[time]
        rows = slice(starts[time], starts[time + 1])
        made = step(products[rows], tuple(each[:active] for each in state), cell)
        for held, new in zip(state, made, strict=True):
            held[:active] = new
        outputs[rows] = made[0]
    return outputs, state


def _run_layers(
    x: np.ndarray, states: State, cells: Sequence[CellParams], step: Step, sizes: Sequence[int], layers: int,
    directions: int, dropout: float,
) -> tuple[np.ndarray, State]:  # fmt: skip
    """Run all layers, with dropout between them; return the last layer's outputs, and the states (layers * directions, batch,
    hidden)."""
    finals: list[State] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            position = layer * directions + direction
            state = tuple(each[position] for each in states)
            output, final = _run_direction(x, state, cells[position], step, sizes, direction == 1)
            outputs.append(output)
            finals.append(final)
        x = np.concatenate(outputs, -1) if directions > 1 else outputs[0]
        if dropout and layer + 1 < layers:
            x = aten.dropout(tensor_from_array(x, float32), dropout, True)._impl.array
    return x, tuple(np.stack(each) for each in zip(*finals, strict=True))


def _check_arguments(x: Tensor, states: Sequence[Tensor], params: Sequence, layers: int, directions: int, name: str) -> tuple:
    cells = [unwrapped(each, CellParams, name) for each in params]
    if len(cells) != layers * directions:
        raise RuntimeError(
            f"{name}: {layers} layers in {directions} directions take {layers * directions} cells, got {len(cells)}"
        )
    if any(each.dtype is not float32 for each in (x, *states)):
        given = ", ".join(str(each.dtype) for each in (x, *states))
        raise RuntimeError(f"{name}: expected float32 inputs and states, got {given}")
    if any(each.dim() != 3 or each.size(0) != layers * directions for each in states):
        raise RuntimeError(f"{name}: states must have shape ({layers * directions}, batch, hidden size)")
    return x.detach()._impl.array, tuple(each.detach()._impl.array for each in states), cells


def _run_over_sequence(
    input: Tensor, states: Sequence[Tensor], params: Sequence, step: Step, layers: int, dropout: float, bidirectional: bool,
    batch_first: bool, name: str,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run over an input (time, batch, features), or (batch, time, features) if `batch_first`."""
    directions = 2 if bidirectional else 1
    x, arrays, cells = _check_arguments(input, states, params, layers, directions, name)
    if x.ndim != 3:
        raise RuntimeError(f"{name}: expected an input of 3 dimensions, got {x.ndim}")
    x = x.swapaxes(0, 1) if batch_first else x
    time, batch = x.shape[:2]
    if any(each.shape[1] != batch for each in arrays):
        raise RuntimeError(f"{name}: the states are of {arrays[0].shape[1]} sequences, and the input has {batch}")
    if time == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    rows = np.ascontiguousarray(x).reshape(time * batch, x.shape[2])
    outputs, finals = _run_layers(rows, arrays, cells, step, [batch] * time, layers, directions, dropout)
    outputs = outputs.reshape(time, batch, outputs.shape[-1])
    return _to_tensors(outputs.swapaxes(0, 1) if batch_first else outputs, *finals)


def _run_over_packed(
    data: Tensor, batch_sizes: Tensor, states: Sequence[Tensor], params: Sequence, step: Step, layers: int, dropout: float,
    bidirectional: bool, name: str,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run over the data of a packed sequence."""
    directions = 2 if bidirectional else 1
    x, arrays, cells = _check_arguments(data, states, params, layers, directions, name)
    sizes = [int(each) for each in batch_sizes.tolist()]
    is_falling = all(first >= second > 0 for first, second in zip(sizes, sizes[1:], strict=False))
    if not sizes or not is_falling or sum(sizes) != len(x) or sizes[0] > arrays[0].shape[1]:
        raise RuntimeError(f"{name}: batch sizes must fall, and their sum be the {len(x)} rows of the data; got {sizes[:10]}")
    outputs, finals = _run_layers(x, arrays, cells, step, sizes, layers, directions, dropout)
    return _to_tensors(outputs, *finals)


def _to_tensors(*arrays: np.ndarray) -> tuple[Tensor, ...]:
    return tuple(tensor_from_array(np.ascontiguousarray(each, np.float32), float32) for each in arrays)


_SETTINGS = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
_KINDS = ", *, ScalarType? dtype=None, bool use_dynamic=False) -> (Tensor, Tensor, Tensor)"


@operator(
    f"aten::quantized_lstm.input(Tensor input, Tensor[] hx, {_CELL}[] params, {_SETTINGS}, bool batch_first{_KINDS}",
    keys=(CPU,),
)
def quantized_lstm(
    input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, *, dtype=None, use_dynamic=False
):
    _check_two_states(hx)
    dropped, name = dropout if train else 0.0, "quantized_lstm"
    return _run_over_sequence(input, hx, params, lstm_step, num_layers, dropped, bidirectional, batch_first, name)


@operator(f"aten::quantized_lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, {_CELL}[] params, {_SETTINGS}{_KINDS}",
          keys=(CPU,))  # fmt: skip
def quantized_lstm_packed(
    data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional, *, dtype=None, use_dynamic=False
):
    _check_two_states(hx)
    dropped, name = dropout if train else 0.0, "quantized_lstm"
    return _run_over_packed(data, batch_sizes, hx, params, lstm_step, num_layers, dropped, bidirectional, name)


def _check_two_states(hx: Sequence[Tensor]) -> None:
    if len(hx) != 2:
        raise RuntimeError(f"lstm expects two hidden states, got {len(hx)}")


@operator(
    f"aten::quantized_gru.input(Tensor input, Tensor hx, {_CELL}[] params, {_SETTINGS}, bool batch_first) -> (Tensor, Tensor)",
    keys=(CPU,),
)
def quantized_gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    dropped, name = dropout if train else 0.0, "quantized_gru"
    return _run_over_sequence(input, [hx], params, gru_step, num_layers, dropped, bidirectional, batch_first, name)


@operator(
    f"aten::quantized_gru.data(Tensor data, Tensor batch_sizes, Tensor hx, {_CELL}[] params, {_SETTINGS}) -> (Tensor, Tensor)",
    keys=(CPU,),
)
def quantized_gru_packed(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    dropped, name = dropout if train else 0.0, "quantized_gru"
    return _run_over_packed(data, batch_sizes, [hx], params, gru_step, num_layers, dropped, bidirectional, name)


# Cells


def _run_cell(input: Tensor, states: Sequence[Tensor], w_ih: object, w_hh: object, step: Step, name: str) -> tuple:
    layers = (unwrapped(each, LinearPackedParams, name) for each in (w_ih, w_hh))
    cell = CellParams("quantized_dynamic", *layers, reduce_range=True)
    products = _product(input.detach()._impl.array, cell.input_layer, cell.reduce_range)
    return _to_tensors(*step(products, tuple(each.detach()._impl.array for each in states), cell))


@operator(
    f"quantized::quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, {_PACKED} w_ih, {_PACKED} w_hh, Tensor bias_ih, "
    "Tensor bias_hh) -> (Tensor, Tensor)",
    keys=(CPU,),
)
def lstm_cell(input, hx, w_ih, w_hh, bias_ih, bias_hh):
    _check_two_states(hx)
    return _run_cell(input, hx, w_ih, w_hh, lstm_step, "quantized_lstm_cell_dynamic")


def _define_cell(name: str, step: Step) -> None:
    def cell(input, hx, w_ih, w_hh, b_ih, b_hh):
        return _run_cell(input, [hx], w_ih, w_hh, step, name)[0]

    operator(
        f"quantized::{name}(Tensor input, Tensor hx, {_PACKED} w_ih, {_PACKED} w_hh, Tensor b_ih, Tensor b_hh) -> Tensor",
        keys=(CPU,),
    )(cell)


_define_cell("quantized_gru_cell_dynamic", gru_step)
_define_cell("quantized_rnn_relu_cell_dynamic", _make_plain_step(lambda x: np.maximum(x, 0)))
_define_cell("quantized_rnn_tanh_cell_dynamic", _make_plain_step(np.tanh))


@operator(
    f"quantized::make_quantized_cell_params_dynamic({_PACKED} w_ih, {_PACKED} w_hh, Tensor bias_ih, Tensor bias_hh, "
    f"bool reduce_range=False) -> {_CELL}",
    keys=(CPU,),
)
def make_cell_params(w_ih, w_hh, bias_ih, bias_hh, reduce_range=False):
    layers = (unwrapped(each, LinearPackedParams, "make_quantized_cell_params_dynamic") for each in (w_ih, w_hh))
    return CellParams("quantized_dynamic", *layers, bias_ih, bias_hh, reduce_range)


@operator(f"quantized::make_quantized_cell_params_fp16({_PACKED} w_ih, {_PACKED} w_hh) -> {_CELL}", keys=(ANY_BACKEND,))
def make_cell_params_in_halves(w_ih, w_hh):
    layers = [unwrapped(each, LinearPackedParams, "make_quantized_cell_params_fp16") for each in (w_ih, w_hh)]
    return CellParams("quantized_fp16", *layers)
