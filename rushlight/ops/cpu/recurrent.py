"""The CPU kernel of a recurrent layer in one direction, and its backward pass.

Products with the input are computed for all steps at once; each step has one matrix product. In float32 the steps are native
code, otherwise a few NumPy calls each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import empty, make
from rushlight.ops.cpu.products import matrix_product
from rushlight.ops.meta.recurrent import GRU_MODE, KINDS, LSTM_MODE, check_layer
from rushlight.ops.registry import cpu

Arrays = tuple[np.ndarray, ...]


class _Steps(NamedTuple):
    """One time step of a kind of layer, forward and backward.

    `run(gates, by_state, state, cell)` takes the contributions of the input and of the state to the gates, and returns the new
    state and cell and the saved values. `back(saved, state, cell, output, grad_state, grad_cell)` takes the state and cell
    before the step and the gradients of those after it. It returns the gradients of the two contributions to the gates, of the
    state other than through the gates, and of the cell.
    """

    run: Callable[..., tuple[np.ndarray, np.ndarray, Arrays]]
    back: Callable[..., tuple[Arrays, Arrays, np.ndarray | float, np.ndarray]]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * np.tanh(0.5 * x) + 0.5


def _rnn(activation: Callable, slope: Callable) -> _Steps:
    def run(gates: Arrays, by_state: Arrays, state: np.ndarray, cell: np.ndarray) -> tuple:
        return activation(gates[0] + by_state[0]), cell, ()

    def back(
        saved: Arrays, state: np.ndarray, cell: np.ndarray, output: np.ndarray, grad_state: np.ndarray, grad_cell: np.ndarray
    ) -> tuple:
        into = (grad_state * slope(output),)
        return into, into, 0.0, grad_cell

    return _Steps(run, back)


def _lstm_step(gates: Arrays, by_state: Arrays, state: np.ndarray, cell: np.ndarray) -> tuple:
    admit, forget, candidate, show = (one + other for one, other in zip(gates, by_state, strict=True))
    admit, forget, candidate, show = _sigmoid(admit), _sigmoid(forget), np.tanh(candidate), _sigmoid(show)
    cell = forget * cell + admit * candidate
    return show * np.tanh(cell), cell, (admit, forget, candidate, show, cell)


def _lstm_back(
    saved: Arrays, state: np.ndarray, cell: np.ndarray, output: np.ndarray, grad_state: np.ndarray, grad_cell: np.ndarray
) -> tuple:
    admit, forget, candidate, show, new_cell = saved
    squashed = np.tanh(new_cell)
    grad_cell = grad_cell + grad_state * show * (1 - squashed * squashed)
    into = (
        grad_cell * candidate * admit * (1 - admit), grad_cell * cell * forget * (1 - forget),
        grad_cell * admit * (1 - candidate * candidate), grad_state * squashed * show * (1 - show),
    )  # fmt: skip
    return into, into, 0.0, grad_cell * forget


def _gru_step(gates: Arrays, by_state: Arrays, state: np.ndarray, cell: np.ndarray) -> tuple:
    reset, update = _sigmoid(gates[0] + by_state[0]), _sigmoid(gates[1] + by_state[1])
    candidate = np.tanh(gates[2] + reset * by_state[2])
    return candidate + update * (state - candidate), cell, (reset, update, candidate, by_state[2])


def _gru_back(
    saved: Arrays, state: np.ndarray, cell: np.ndarray, output: np.ndarray, grad_state: np.ndarray, grad_cell: np.ndarray
) -> tuple:
    reset, update, candidate, by_state = saved
    into = grad_state * (1 - update) * (1 - candidate * candidate)
    gates = into * by_state * reset * (1 - reset), grad_state * (state - candidate) * update * (1 - update)
    return (*gates, into), (*gates, into * reset), grad_state * update, grad_cell


_STEPS = (
    _rnn(lambda x: np.maximum(x, 0), lambda output: output > 0), _rnn(np.tanh, lambda output: 1 - output * output),
    _Steps(_lstm_step, _lstm_back), _Steps(_gru_step, _gru_back),
)  # fmt: skip


def _in_time(array: np.ndarray, reverse: bool) -> np.ndarray:
    return array[::-1] if reverse else array


def _parts(array: np.ndarray, count: int) -> Arrays:
    return tuple(np.split(array, count, axis=-1)) if count else ()


@cpu("mkldnn_rnn_layer")
def mkldnn_rnn_layer(
    input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, num_layers, *options
):  # fmt: skip
    steps, batch, hidden = check_layer(input, (weight0, weight1, weight2, weight3), (hx_, cx_), mode, num_layers)
    first, recurrent, bias, state_bias = (native.contiguous(x._impl.array) for x in (weight0, weight1, weight2, weight3))
    state, cell = (native.contiguous(tensor._impl.array) for tensor in (hx_, cx_))
    rows = native.contiguous(input._impl.array).reshape(steps * batch, input.shape[2])
    if mode != GRU_MODE:
        bias, state_bias = bias + state_bias, None
    gates = matrix_product(rows, first.T, bias).reshape(steps, batch, KINDS[mode].gates * hidden)
    output, workspace = (empty((steps, batch, size * hidden), input.dtype) for size in (1, KINDS[mode].saved))
    last_cell = empty(cell.shape, input.dtype)
    results = (output._impl.array, last_cell._impl.array, workspace._impl.array)
    reverse = bool(reverse)
    if not _run_natively(mode, results, gates, recurrent, state, cell, state_bias, reverse):
        _run(mode, results, gates, recurrent, state, cell, state_bias, reverse)
    last = output._impl.array[0 if reverse else -1] if steps else state
    return output, make(last.copy(), input.dtype), last_cell, workspace


def _run_natively(
    mode: int, positions: Arrays, gates: np.ndarray, recurrent: np.ndarray, state: np.ndarray, cell: np.ndarray,
    bias: np.ndarray | None, reverse: bool,
) -> bool:  # fmt: skip
    if native.kernels is None or gates.dtype != np.float32:
        return False
    output, last_cell, workspace = positions
    given = workspace if KINDS[mode].saved else None
    cells = (last_cell, cell) if mode == LSTM_MODE else (None, None)
    return native.kernels.recurrent(mode, output, cells[0], given, gates, recurrent, state, cells[1], bias, reverse)


def _run(
    mode: int, positions: Arrays, gates: np.ndarray, recurrent: np.ndarray, state: np.ndarray, cell: np.ndarray,
    bias: np.ndarray | None, reverse: bool,
) -> None:  # fmt: skip
    output, last_cell, workspace = positions
    kind, step = KINDS[mode], _STEPS[mode].run
    turned = np.ascontiguousarray(recurrent.T)
    for time in range(len(gates))[:: -1 if reverse else 1]:
        by_state = state @ turned if bias is None else state @ turned + bias
        state, cell, saved = step(_parts(gates[time], kind.gates), _parts(by_state, kind.gates), state, cell)
        output[time] = state
        if saved:
            np.concatenate(saved, axis=-1, out=workspace[time])
    last_cell[...] = cell


def _previous(first: np.ndarray, values: np.ndarray, reverse: bool) -> np.ndarray:
    """Return for each step the value before it in the direction of the pass."""
    ordered = _in_time(values, reverse)
    return _in_time(np.concatenate([first[None], ordered[:-1]]), reverse)


class _Layer(NamedTuple):
    """The values that the backward pass reads: recurrent weights, first state and cell, and the steps' results."""

    recurrent: np.ndarray
    state: np.ndarray
    cell: np.ndarray
    output: np.ndarray
    saved: np.ndarray


def _gate_gradients(mode: int, layer: _Layer, grads: tuple, reverse: bool) -> tuple[np.ndarray, np.ndarray, Arrays]:
    """Return the gradients of the input's and the state's contributions to the gates, (steps, batch, gates * hidden), and of
    the first state and cell. `grads` are those of the output, which may be None, and of the last state and cell."""
    steps, batch, hidden = layer.output.shape
    size, dtype = (steps, batch, KINDS[mode].gates * hidden), layer.output.dtype
    into_gates = native.scratch(size, dtype)
    into_hidden = native.scratch(size, dtype) if mode == GRU_MODE else into_gates
    state, cell = np.zeros(layer.state.shape, dtype) + grads[1], np.zeros(layer.cell.shape, dtype) + grads[2]
    if not _back_natively(mode, layer, (into_gates, into_hidden, state, cell), grads[0], reverse):
        state, cell = _back(mode, layer, (into_gates, into_hidden, state, cell), grads[0], reverse)
    return into_gates, into_hidden, (state, cell)


def _back_natively(mode: int, layer: _Layer, positions: Arrays, grad_output: np.ndarray | None, reverse: bool) -> bool:
    if native.kernels is None or layer.output.dtype != np.float32:
        return False
    into_gates, into_hidden, state, cell = positions
    carried = {LSTM_MODE: cell, GRU_MODE: np.empty_like(state)}.get(mode)
    recurrent, first, first_cell, output, saved = map(native.contiguous, layer)
    return native.kernels.recurrent_backward(
        mode, into_gates, into_hidden if mode == GRU_MODE else None, state, carried, saved if KINDS[mode].saved else None,
        recurrent, first, first_cell if mode == LSTM_MODE else None, output,
        None if grad_output is None else native.contiguous(grad_output), reverse,
    )  # fmt: skip


def _back(mode: int, layer: _Layer, positions: Arrays, grad_output: np.ndarray | None, reverse: bool) -> Arrays:
    kind, step, hidden = KINDS[mode], _STEPS[mode].back, layer.output.shape[2]
    into_gates, into_hidden, grad_state, grad_cell = positions
    before = _previous(layer.state, layer.output, reverse)
    cells = before
    if mode == LSTM_MODE:
        cells = _previous(layer.cell, layer.saved[..., -hidden:], reverse)
    for time in range(len(before))[:: 1 if reverse else -1]:
        given = grad_state if grad_output is None else grad_state + grad_output[time]
        saved = _parts(layer.saved[time], kind.saved)
        found = step(saved, before[time], cells[time], layer.output[time], given, grad_cell)
        np.concatenate(found[0], axis=-1, out=into_gates[time])
        np.concatenate(found[1], axis=-1, out=into_hidden[time])
        grad_state, grad_cell = into_hidden[time] @ layer.recurrent + found[2], found[3]
    return grad_state, grad_cell


@cpu("mkldnn_rnn_layer_backward")
def mkldnn_rnn_layer_backward(
    input, weight1, weight2, weight3, weight4, hx_, cx_tmp, output, hy_, cy_, grad_output, grad_hy, grad_cy, reverse, mode,
    hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, workspace,
):  # fmt: skip
    steps, batch, hidden = check_layer(input, (weight1, weight2, weight3, weight4), (hx_, cx_tmp), mode, num_layers)
    wanted = [steps, batch, hidden], [steps, batch, KINDS[mode].saved * hidden]
    if [list(output.shape), list(workspace.shape)] != list(wanted):
        raise RuntimeError(
            f"mkldnn_rnn_layer_backward: expected output and workspace of shapes {wanted[0]} and {wanted[1]}, but got "
            f"{list(output.shape)} and {list(workspace.shape)}"
        )
    x, reverse = input._impl.array, bool(reverse)
    layer = _Layer(*(tensor._impl.array for tensor in (weight2, hx_, cx_tmp, output, workspace)))
    grads = [0.0 if grad is None else grad._impl.array for grad in (grad_hy, grad_cy)]
    given = None if grad_output is None else grad_output._impl.array
    into_gates, into_hidden, (grad_hx, grad_cx) = _gate_gradients(mode, layer, (given, *grads), reverse)
    count = steps * batch
    rows, by_state = (array.reshape(count, KINDS[mode].gates * hidden) for array in (into_gates, into_hidden))
    states = _previous(layer.state, layer.output, reverse).reshape(count, hidden)
    bias = rows.sum(0)
    state_bias = by_state.sum(0) if mode == GRU_MODE else bias.copy()
    results = (
        matrix_product(rows, weight1._impl.array).reshape(x.shape), matrix_product(rows.T, x.reshape(count, x.shape[2])),
        matrix_product(by_state.T, states), bias, state_bias, grad_hx,
    )  # fmt: skip
    cell = make(grad_cx, input.dtype) if mode == LSTM_MODE else empty(cx_tmp.shape, input.dtype)
    return *(make(array, input.dtype) for array in results), cell
