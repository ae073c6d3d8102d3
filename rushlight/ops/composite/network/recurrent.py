"""Recurrent layers over sequences: several layers deep, in one or both directions, over padded or packed batches.

In: (time, batch, features), or the rows of a packed batch with the number of sequences at each time step. Out: the last
layer's hidden states in the same form, and each layer's and direction's final state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state as thread
from rushlight.ops.composite.network.common import aten
from rushlight.ops.composite.network.recurrent_cells import CELLS, State, Weights
from rushlight.ops.meta.recurrent import KINDS, LSTM_MODE
from rushlight.ops.registry import composite

MODES = {kind.name: mode for mode, kind in enumerate(KINDS)}


class Options(NamedTuple):
    """The non-tensor options of a layer."""

    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool


def _weights(params: list[Tensor], options: Options, projected: bool) -> list[Weights]:
    """Return the parameters of each layer and direction."""
    count = 2 + 2 * options.has_biases + projected
    wanted = count * options.num_layers * (1 + options.bidirectional)
    if len(params) != wanted:
        raise RuntimeError(f"got an incorrect number of RNN parameters: {len(params)}, expected {wanted}")
    parts = [list(params[start : start + count]) for start in range(0, wanted, count)]
    if options.has_biases:
        return [Weights(*part) for part in parts]
    return [Weights(part[0], part[1], None, None, part[2] if projected else None) for part in parts]


def _run_forwards(step: Callable, gates: tuple[Tensor, ...], initial: State) -> tuple[list[Tensor], State]:
    """Run forwards in time; return the hidden states and the final state. Sequences may end early, those at the end of the
    batch first."""
    outputs, state, finished = [], initial, []
    for gate in gates:
        count, rows = gate.shape[0], state[0].shape[0]
        if count < rows:
            finished.append(tuple(part.narrow(0, count, rows - count) for part in state))
            state = tuple(part.narrow(0, 0, count) for part in state)
        state = step(gate, state)
        outputs.append(state[0])
    if finished:
        state = tuple(aten.cat.default(list(parts)) for parts in zip(state, *reversed(finished), strict=True))
    return outputs, state


def _run_backwards(step: Callable, gates: tuple[Tensor, ...], initial: State) -> tuple[list[Tensor], State]:
    """Run backwards in time: each sequence starts, with its initial state, at its own last step."""
    outputs: list[Tensor] = []
    state = initial if not gates else tuple(part.narrow(0, 0, gates[-1].shape[0]) for part in initial)
    for gate in reversed(gates):
        count, rows = gate.shape[0], state[0].shape[0]
        if count > rows:
            joining = (part.narrow(0, rows, count - rows) for part in initial)
            state = tuple(aten.cat.default([part, new]) for part, new in zip(state, joining, strict=True))
        state = step(gate, state)
        outputs.append(state[0])
    return outputs[::-1], state


def _run_layer(
    name: str, data: Tensor, sizes: list[int] | None, initial: State, weights: Weights, reverse: bool
) -> tuple[Tensor, State]:
    """Run one layer in one direction; `sizes` are the batch sizes of packed data."""
    if sizes is None and _has_kernel(data, initial, weights):
        return _kernel(name, data, initial, weights, reverse)
    return by_steps(name, data, sizes, initial, weights, reverse)


def by_steps(
    name: str, data: Tensor, sizes: list[int] | None, initial: State, weights: Weights, reverse: bool
) -> tuple[Tensor, State]:
    """Run one layer, step by step through operators, so that it can be differentiated any number of times."""
    cell = CELLS[name]
    projected = cell.project(weights, data)
    gates = projected.unbind(0) if sizes is None else projected.split_with_sizes(sizes)
    run = _run_backwards if reverse else _run_forwards
    outputs, state = run(cell.stepper(weights), tuple(gates), initial)
    return (aten.stack.default(outputs) if sizes is None else aten.cat.default(outputs)), state


def _has_kernel(data: Tensor, initial: State, weights: Weights) -> bool:
    """Return whether the fused kernel supports this layer: float32 on the CPU, without autocast."""
    tensors = (data, *initial, weights.input, weights.hidden)
    plain = weights.projection is None and (thread.autocast is None or not thread.autocast.enabled)
    return plain and data.is_cpu and all(tensor.dtype is float32 for tensor in tensors)


def _kernel(name: str, data: Tensor, initial: State, weights: Weights, reverse: bool) -> tuple[Tensor, State]:
    mode, size = MODES[name], weights.hidden.shape[1]
    biases = (weights.input_bias, weights.hidden_bias)
    if weights.input_bias is None:
        biases = (data.new_zeros([weights.hidden.shape[0]]),) * 2
    cell = initial[1] if mode == LSTM_MODE else data.new_empty([0])
    options = (reverse, [], mode, size, 1, weights.input_bias is not None, False, False, True)
    output, hidden, last, _ = aten.mkldnn_rnn_layer.default(
        data.contiguous(), weights.input, weights.hidden, *biases, initial[0], cell, *options
    )
    return output, (hidden, last) if mode == LSTM_MODE else (hidden,)


def _run_layers(
    name: str, data: Tensor, sizes: list[int] | None, states: State, params: list[Tensor], options: Options
) -> tuple[Tensor, ...]:
    """Run all layers; return the last layer's output, then for each part of the state the final values (layers * directions,
    ...)."""
    for part in states:
        if part.dim() != 3:
            raise RuntimeError(f"Expected hidden state of 3 dimensions, got {list(part.shape)}")
    projected = len(states) == 2 and states[0].shape[2] != states[1].shape[2]
    weights = _weights(params, options, projected)
    directions = 1 + options.bidirectional
    _check_state(states, len(weights))
    final = []
    for layer in range(options.num_layers):
        outputs = []
        for index in range(layer * directions, (layer + 1) * directions):
            initial = tuple(part.select(0, index) for part in states)
            output, state = _run_layer(name, data, sizes, initial, weights[index], index % directions == 1)
            outputs.append(output)
            final.append(state)
        data = outputs[0] if directions == 1 else aten.cat.default(outputs, -1)
        if options.dropout and options.train and layer < options.num_layers - 1:
            data = aten.dropout.default(data, options.dropout, True)
    return data, *(aten.stack.default(list(parts)) for parts in zip(*final, strict=True))


def _check_state(states: State, count: int) -> None:
    for part in states:
        if part.dim() != 3 or part.shape[0] != count:
            raise RuntimeError(f"Expected hidden state of shape [{count}, batch, hidden], got {list(part.shape)}")


def _run_padded(
    name: str, input: Tensor, states: State, params: list[Tensor], options: Options, batch_first: bool
) -> tuple[Tensor, ...]:
    if input.dim() != 3:
        raise RuntimeError(f"Expected input of shape (steps, batch, features), got {list(input.shape)}")
    data = input.transpose(0, 1) if batch_first else input
    if data.shape[0] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    output, *final = _run_layers(name, data, None, states, params, options)
    return (output.transpose(0, 1) if batch_first else output), *final


def _run_packed(
    name: str, data: Tensor, batch_sizes: Tensor, states: State, params: list[Tensor], options: Options
) -> tuple[Tensor, ...]:
    if batch_sizes.dim() != 1 or not batch_sizes.dtype.is_integral or data.dim() != 2:
        raise RuntimeError(
            f"expected data of two dimensions and batch_sizes of one, of integers, but got data of shape {list(data.shape)} "
            f"and batch_sizes of shape {list(batch_sizes.shape)} and {batch_sizes.dtype}"
        )
    sizes = [int(size) for size in batch_sizes.tolist()]
    if not sizes or sum(sizes) != data.shape[0]:
        raise RuntimeError(f"batch_sizes must add up to the rows of data, {data.shape[0]}, but got {sizes}")
    if any(later > earlier or later < 1 for earlier, later in zip(sizes, sizes[1:], strict=False)):
        raise RuntimeError(f"batch_sizes must be positive and must not grow, but got {sizes}")
    return _run_layers(name, data, sizes, states, params, options)


_OPTIONS = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def _two(hx: list[Tensor]) -> State:
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    return tuple(hx)


@composite(f"lstm.input(Tensor input, Tensor[] hx, {_OPTIONS}, bool batch_first) -> (Tensor, Tensor, Tensor)")
def lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    options = Options(has_biases, num_layers, dropout, train, bidirectional)
    return _run_padded("lstm", input, _two(hx), params, options, batch_first)


@composite(f"lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, {_OPTIONS}) -> (Tensor, Tensor, Tensor)")
def lstm_packed(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    options = Options(has_biases, num_layers, dropout, train, bidirectional)
    return _run_packed("lstm", data, batch_sizes, _two(hx), params, options)


def _define(name: str) -> None:
    @composite(f"{name}.input(Tensor input, Tensor hx, {_OPTIONS}, bool batch_first) -> (Tensor, Tensor)")
    def padded(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        options = Options(has_biases, num_layers, dropout, train, bidirectional)
        return _run_padded(name, input, (hx,), params, options, batch_first)

    @composite(f"{name}.data(Tensor data, Tensor batch_sizes, Tensor hx, {_OPTIONS}) -> (Tensor, Tensor)")
    def packed(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
        options = Options(has_biases, num_layers, dropout, train, bidirectional)
        return _run_packed(name, data, batch_sizes, (hx,), params, options)


for _name in ("gru", "rnn_tanh", "rnn_relu"):
    _define(_name)
