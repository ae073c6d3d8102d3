"""The CPU kernel of an LSTM layer in one direction, and its backward pass.

Products with the input are taken for all steps at once; a step has one matrix product and few elementwise calls. The
sigmoid is 0.5 * tanh(0.5 * x) + 0.5, so that one tanh serves all gates.
"""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import empty, make
from rushlight.ops.cpu.products import matrix_product
from rushlight.ops.meta.recurrent import check_layer
from rushlight.ops.registry import cpu


def _scale(hidden: int, kind: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Factor and summand per gate (input, forget, candidate, output) that make a tanh a sigmoid where one is due."""
    factor = np.repeat(np.array([0.5, 0.5, 1.0, 0.5], kind), hidden)
    return factor, np.where(factor == 1, 0, factor).astype(kind)


def _in_time(array: np.ndarray, reverse: bool) -> np.ndarray:
    return array[::-1] if reverse else array


@cpu("mkldnn_rnn_layer")
def mkldnn_rnn_layer(
    input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, num_layers, *options
):  # fmt: skip
    steps, batch, hidden = check_layer(input, (weight0, weight1, weight2, weight3), (hx_, cx_), mode, num_layers)
    if native.kernels is not None and input.dtype is float32 and steps and batch:
        return _native_layer(input, (weight0, weight1, weight2, weight3), (hx_, cx_), bool(reverse))
    x, first, recurrent = input._impl.array, weight0._impl.array, weight1._impl.array
    factor, summand = _scale(hidden, x.dtype)
    bias = (weight2._impl.array + weight3._impl.array) * factor
    gates = (x.reshape(steps * batch, x.shape[2]) @ (first.T * factor) + bias).reshape(steps, batch, 4 * hidden)
    workspace = np.empty((steps, batch, 5 * hidden), x.dtype)
    output = np.empty((steps, batch, hidden), x.dtype)
    state, cell = hx_._impl.array, cx_._impl.array
    recurrent = np.ascontiguousarray(recurrent.T * factor)
    times = range(steps - 1, -1, -1) if reverse else range(steps)
    for time in times:
        acts, new_cell = workspace[time, :, : 4 * hidden], workspace[time, :, 4 * hidden :]
        np.tanh(np.add(state @ recurrent, gates[time], out=gates[time]), out=acts)
        acts *= factor
        acts += summand
        np.multiply(acts[:, hidden : 2 * hidden], cell, out=new_cell)
        new_cell += acts[:, :hidden] * acts[:, 2 * hidden : 3 * hidden]
        state = np.multiply(np.tanh(new_cell), acts[:, 3 * hidden :], out=output[time])
        cell = new_cell
    results = output, np.array(state), np.array(cell), workspace
    return tuple(make(array, input.dtype) for array in results)


def _native_layer(
    input: Tensor, weights: tuple[Tensor, ...], start: tuple[Tensor, Tensor], reverse: bool
) -> tuple[Tensor, ...]:
    first, recurrent, *biases = (native.contiguous(tensor._impl.array) for tensor in weights)
    state, cell = (native.contiguous(tensor._impl.array) for tensor in start)
    (steps, batch, features), hidden = input.shape, recurrent.shape[1]
    rows = native.contiguous(input._impl.array).reshape(steps * batch, features)
    gates = matrix_product(rows, first.T, biases[0] + biases[1]).reshape(steps, batch, 4 * hidden)
    output, workspace = (empty((steps, batch, size * hidden), float32) for size in (1, 5))
    last_cell, states = empty((batch, hidden), float32), output._impl.array
    native.kernels.lstm(states, last_cell._impl.array, workspace._impl.array, gates, recurrent, state, cell, reverse)
    return output, make(states[0 if reverse else -1].copy(), float32), last_cell, workspace


def _slopes(acts: np.ndarray, hidden: int) -> np.ndarray:
    """The derivatives of the gates by what went into them."""
    slopes = acts * (1 - acts)
    candidate = acts[..., 2 * hidden : 3 * hidden]
    slopes[..., 2 * hidden : 3 * hidden] = 1 - candidate * candidate
    return slopes


def _array(tensor: Tensor | None) -> np.ndarray | float:
    return 0.0 if tensor is None else tensor._impl.array


def _gate_gradients(
    acts: np.ndarray, cells: np.ndarray, before: np.ndarray, recurrent: np.ndarray, grads: tuple, reverse: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gradients of what went into the gates at each step, and those of the first state and cell."""
    grad_output, grad_state, grad_cell = grads
    steps, batch, hidden = cells.shape
    into_gates, squashed = _slopes(acts, hidden), np.tanh(cells)
    kept = acts[..., 3 * hidden :] * (1 - squashed * squashed)
    zeros = np.zeros((batch, hidden), acts.dtype)
    grad_state, grad_cell = zeros + grad_state, zeros + grad_cell
    for time in range(steps) if reverse else range(steps - 1, -1, -1):
        if grad_output is not None:
            grad_state = grad_state + grad_output[time]
        grad_cell = grad_cell + grad_state * kept[time]
        slopes = into_gates[time]
        slopes[:, :hidden] *= grad_cell * acts[time, :, 2 * hidden : 3 * hidden]
        slopes[:, hidden : 2 * hidden] *= grad_cell * before[time]
        slopes[:, 2 * hidden : 3 * hidden] *= grad_cell * acts[time, :, :hidden]
        slopes[:, 3 * hidden :] *= grad_state * squashed[time]
        grad_cell = grad_cell * acts[time, :, hidden : 2 * hidden]
        grad_state = slopes @ recurrent
    return into_gates, grad_state, grad_cell


def _native_gate_gradients(
    saved: np.ndarray, recurrent: np.ndarray, cell: np.ndarray, grads: tuple, reverse: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    if native.kernels is None or saved.dtype != np.float32:
        return None
    steps, batch, hidden = saved.shape[0], saved.shape[1], recurrent.shape[1]
    into_gates = native.scratch((steps, batch, 4 * hidden), saved.dtype)
    grad_state, grad_cell = (np.zeros((batch, hidden), np.float32) + grad for grad in grads[1:])
    grad_output = None if grads[0] is None else native.contiguous(grads[0])
    arrays = into_gates, grad_state, grad_cell, native.contiguous(saved), native.contiguous(recurrent), native.contiguous(cell)
    return arrays[:3] if native.kernels.lstm_backward(*arrays, grad_output, reverse) else None


def _previous(first: np.ndarray, values: np.ndarray, reverse: bool) -> np.ndarray:
    """For each step the value before it in the order of the pass."""
    ordered = _in_time(values, reverse)
    return _in_time(np.concatenate([first[None], ordered[:-1]]), reverse)


@cpu("mkldnn_rnn_layer_backward")
def mkldnn_rnn_layer_backward(
    input, weight1, weight2, weight3, weight4, hx_, cx_tmp, output, hy_, cy_, grad_output, grad_hy, grad_cy, reverse, mode,
    hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, workspace,
):  # fmt: skip
    x, saved, recurrent = input._impl.array, workspace._impl.array, weight2._impl.array
    if recurrent.ndim != 2 or x.ndim != 3 or saved.ndim != 3:
        raise RuntimeError(
            f"mkldnn_rnn_layer_backward: expected input and workspace of 3 dimensions and weights of 2, but got {x.shape}, "
            f"{saved.shape} and {recurrent.shape}"
        )
    hidden = recurrent.shape[1]
    acts, cells = saved[..., : 4 * hidden], saved[..., 4 * hidden :]
    grads = (None if grad_output is None else grad_output._impl.array, _array(grad_hy), _array(grad_cy))
    found = _native_gate_gradients(saved, recurrent, cx_tmp._impl.array, grads, bool(reverse))
    if found is None:
        before = _previous(cx_tmp._impl.array, cells, reverse)
        found = _gate_gradients(acts, cells, before, recurrent, grads, reverse)
    into_gates, grad_hx, grad_cx = found
    count = x.shape[0] * x.shape[1]
    rows = into_gates.reshape(count, 4 * hidden)
    states = _previous(hx_._impl.array, output._impl.array, reverse).reshape(count, hidden)
    bias = rows.sum(0)
    results = (
        matrix_product(rows, weight1._impl.array).reshape(x.shape), matrix_product(rows.T, x.reshape(count, x.shape[2])),
        matrix_product(rows.T, states), bias, bias.copy(), grad_hx, grad_cx,
    )  # fmt: skip
    return tuple(make(array, input.dtype) for array in results)
