"""Rules for recurrent layers and cells with quantized weights: their steps are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor
from rushlight.quantized.captures.layers import linear_weight, product
from rushlight.quantized.captures.tensors import rule
from rushlight.quantized.linear import unwrapped
from rushlight.quantized.packed import CellParams
from rushlight.quantized.registration import aten

_MAX_UNROLLED_STEPS = 128  # sequences of more steps are not unrolled, because larger graphs take long to compile
State = tuple[Tensor, ...]


def _sigmoid(x: Tensor) -> Tensor:
    return ((x * 0.5).tanh() + 1.0) * 0.5


def _lstm_step(products: Tensor, state: State, held: Tensor) -> State:
    """Compute one step of an LSTM: gates in the order input, forget, cell, output. `products` are those of the input, `held`
    those of the state."""
    take, forget, new, show = (held + products).chunk(4, -1)
    memory = _sigmoid(forget) * state[1] + _sigmoid(take) * new.tanh()
    return _sigmoid(show) * memory.tanh(), memory


def _gru_step(products: Tensor, state: State, held: Tensor) -> State:
    """Return one step, with gates in the order reset, update, new."""
    given, kept = products.chunk(3, -1), held.chunk(3, -1)
    reset, update = _sigmoid(given[0] + kept[0]), _sigmoid(given[1] + kept[1])
    new = (given[2] + kept[2] * reset).tanh()
    return ((state[0] - new) * update + new,)


def _run_direction(x: Tensor, state: State, cell: CellParams, step: Callable, backwards: bool) -> tuple[Tensor, State]:
    """Run a layer in one direction over (time, batch, features); return the outputs of all steps and the last state."""
    products, outputs = product(x, cell.input_layer, cell.reduce_range), []
    times = range(x.shape[0])
    for time in reversed(times) if backwards else times:
        state = step(products[time], state, product(state[0], cell.state_layer, cell.reduce_range))
        outputs.append(state[0])
    return aten.stack(outputs[::-1] if backwards else outputs), state


def _run_layers(
    x: Tensor, states: Sequence[Tensor], params: Sequence, step: Callable, settings: tuple, batch_first: bool
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run all layers; return the last layer's outputs, and the states (layers * directions, batch, hidden). Invalid arguments
    are left to the eager operator, which raises the errors."""
    layers, dropout, is_bidirectional = settings
    cells, directions = [unwrapped(each, CellParams, "a recurrent layer") for each in params], 1 + bool(is_bidirectional)
    fits = x.dim() == 3 and all(each.dim() == 3 and each.shape[0] == layers * directions for each in states)
    if not fits or dropout or len(cells) != layers * directions or any(each.dtype is not float32 for each in (x, *states)):
        raise NotImplementedError("a quantized recurrent layer with dropout, or of these arguments")
    x = x.transpose(0, 1) if batch_first else x
    if not 0 < x.shape[0] * len(cells) <= _MAX_UNROLLED_STEPS:
        raise NotImplementedError(f"a quantized recurrent layer of more than {_MAX_UNROLLED_STEPS} steps")
    finals = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            position = layer * directions + direction
            output, final = _run_direction(x, tuple(each[position] for each in states), cells[position], step, direction == 1)
            outputs.append(output)
            finals.append(final)
        x = aten.cat(outputs, -1) if directions > 1 else outputs[0]
    made = x.transpose(0, 1) if batch_first else x
    return made, *(aten.stack(list(each)) for each in zip(*finals, strict=True))


@rule("aten::quantized_lstm.input")
def quantized_lstm(
    input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, *, dtype=None, use_dynamic=False
):
    return _run_layers(input, hx, params, _lstm_step, (num_layers, train and dropout, bidirectional), batch_first)


@rule("aten::quantized_gru.input")
def quantized_gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    return _run_layers(input, [hx], params, _gru_step, (num_layers, train and dropout, bidirectional), batch_first)


def _step_cell(input: Tensor, states: State, w_ih: object, w_hh: object, step: Callable) -> State:
    taking, holding = linear_weight(w_ih, input, "cell"), linear_weight(w_hh, states[0], "cell")
    return step(product(input, taking, True), states, product(states[0], holding, True))


@rule("quantized::quantized_lstm_cell_dynamic")
def lstm_cell(input, hx, w_ih, w_hh, bias_ih, bias_hh):
    return _step_cell(input, tuple(hx), w_ih, w_hh, _lstm_step)


def _define_cell(name: str, step: Callable) -> None:
    @rule(f"quantized::{name}")
    def cell(input, hx, w_ih, w_hh, b_ih, b_hh):
        return _step_cell(input, (hx,), w_ih, w_hh, step)[0]


_define_cell("quantized_gru_cell_dynamic", _gru_step)
_define_cell("quantized_rnn_relu_cell_dynamic", lambda products, state, held: ((held + products).relu(),))
_define_cell("quantized_rnn_tanh_cell_dynamic", lambda products, state, held: ((held + products).tanh(),))
