"""rushlight/recurrent.h and recurrent_backward.h against float64, for one pass and for several at the same time."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.inductor.native.native_build import aligned


class Pass(ctypes.Structure):
    """rl::recurrent_pass."""

    _fields_ = [
        *((name, ctypes.c_long) for name in ("steps", "batch", "hidden")), ("reverse", ctypes.c_bool),
        *((name, ctypes.c_void_p) for name in ("gates", "panels", "state", "cell", "bias", "output", "last_cell", "workspace")),
    ]  # fmt: skip


class BackPass(ctypes.Structure):
    """rl::recurrent_back_pass."""

    _fields_ = [
        *((name, ctypes.c_long) for name in ("steps", "batch", "hidden")), ("reverse", ctypes.c_bool),
        *((name, ctypes.c_void_p) for name in (
            "grad_output", "grad_state", "grad_cell", "panels", "state", "cell", "output", "workspace", "into_gates",
            "into_hidden", "to_state", "carried",
        )),
    ]  # fmt: skip


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm(gates, by_state, state, cell):
    admit, forget, candidate, show = (one + other for one, other in zip(gates, by_state, strict=True))
    admit, forget, candidate, show = sigmoid(admit), sigmoid(forget), np.tanh(candidate), sigmoid(show)
    cell = forget * cell + admit * candidate
    return show * np.tanh(cell), cell, (admit, forget, candidate, show, cell)


def gru(gates, by_state, state, cell):
    reset, update = sigmoid(gates[0] + by_state[0]), sigmoid(gates[1] + by_state[1])
    candidate = np.tanh(gates[2] + reset * by_state[2])
    return (1 - update) * candidate + update * state, cell, (reset, update, candidate, by_state[2])


def rnn_relu(gates, by_state, state, cell):
    return np.maximum(gates[0] + by_state[0], 0), cell, ()


def rnn_tanh(gates, by_state, state, cell):
    return np.tanh(gates[0] + by_state[0]), cell, ()


# The gates, what is saved, and a step of each kind.
KINDS = {"lstm": (4, 5, lstm), "gru": (3, 4, gru), "rnn_relu": (1, 0, rnn_relu), "rnn_tanh": (1, 0, rnn_tanh)}


def exact(kind, gates, weight, state, cell, bias, reverse):
    """The output, the last cell, and what is saved of all steps."""
    count, saved, run = KINDS[kind]
    steps, batch, hidden = len(gates), *state.shape
    gates, weight, state, cell, bias = (array.astype(np.float64) for array in (gates, weight, state, cell, bias))
    output, workspace = np.empty((steps, batch, hidden)), np.empty((steps, batch, saved * hidden))
    for time in range(steps)[:: -1 if reverse else 1]:
        by_state = state @ weight.T + (bias if kind == "gru" else 0)
        parts = (np.split(array, count, axis=1) for array in (gates[time], by_state))
        state, cell, kept = run(*parts, state, cell)
        output[time] = state
        workspace[time] = np.concatenate(kept, axis=1) if kept else 0
    return output, cell, workspace


def address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data


@pytest.mark.parametrize("saves", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("steps", "batch", "hidden"), [(1, 1, 1), (5, 3, 17), (4, 13, 64), (3, 1, 160), (2, 30, 33)])
@pytest.mark.parametrize("kind", list(KINDS))
def test_steps(kernels, kind, steps, batch, hidden, count, saves):
    generator, (gate_count, saved, _) = np.random.default_rng(0), KINDS[kind]
    passes, kept, wanted = (Pass * count)(), [], []
    for number in range(count):
        width = gate_count * hidden
        shapes = (steps, batch, width), (width, hidden), (batch, hidden), (batch, hidden), (width,)
        gates, weight, state, cell, bias = (generator.normal(size=shape).astype(np.float32) for shape in shapes)
        weight *= 0.3
        panels = aligned(kernels.call("gate_panels_floats", gate_count, hidden, result=ctypes.c_long))
        shapes = (steps, batch, hidden), (batch, hidden), (steps, batch, saved * hidden)
        results = [np.full(shape, np.nan, np.float32) for shape in shapes]
        given = gates, panels, state, cell if kind == "lstm" else None, bias if kind == "gru" else None
        places = results[0], results[1] if kind == "lstm" else None, results[2] if saves and saved else None
        passes[number] = Pass(steps, batch, hidden, number % 2 == 1, *map(address, (*given, *places)))
        kept.append((gates, weight, state, cell, bias, panels, places))
        wanted.append(exact(kind, gates, weight, state, cell, bias, number % 2 == 1))
    pointers = [(ctypes.c_void_p * count)(*[item[place].ctypes.data for item in kept]) for place in (1, 5)]
    kernels.call(kind, passes, count, *pointers)
    for (*_, places), want in zip(kept, wanted, strict=True):
        for found, expected in zip(places, want, strict=True):
            if found is not None:
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


BACK = {"lstm": "lstm_back_of", "gru": "gru_back_of", "rnn_relu": "rnn_relu_back", "rnn_tanh": "rnn_tanh_back"}
NUDGE = 1e-6


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("steps", "batch", "hidden"), [(1, 1, 1), (4, 3, 17), (3, 13, 40), (3, 2, 160)])
@pytest.mark.parametrize("kind", list(KINDS))
def test_back(kernels, kind, steps, batch, hidden, reverse):
    """The slope of a loss along a direction of what went into the gates, the first state and cell, and the bias."""
    generator, (gate_count, saved, _) = np.random.default_rng(1), KINDS[kind]
    width = gate_count * hidden
    shapes = (steps, batch, width), (width, hidden), (batch, hidden), (batch, hidden), (width,)
    values = [generator.normal(size=shape).astype(np.float32) for shape in shapes]
    values[1] *= hidden**-0.5
    weights = [generator.normal(size=shape).astype(np.float32) for shape in ((steps, batch, hidden), *shapes[2:4])]
    moves = [generator.normal(size=shape) for shape in shapes]
    moves[1] *= 0

    def loss(move: float) -> float:
        moved = [value.astype(np.float64) + move * way for value, way in zip(values, moves, strict=True)]
        output, cell, _ = exact(kind, *moved, reverse)
        last = output[0 if reverse else -1]
        results = output, last, cell if kind == "lstm" else np.zeros(1)
        return sum((result * weight).sum() for result, weight in zip(results, weights, strict=True))

    output, _, workspace = (array.astype(np.float32) for array in exact(kind, *values, reverse))
    into_gates, into_hidden = (np.full(shapes[0], np.nan, np.float32) for _ in range(2))
    to_state, carried = (np.full((batch, hidden), np.nan, np.float32) for _ in range(2))
    panels = aligned(kernels.call("packed_floats", width, hidden, result=ctypes.c_long))
    is_lstm, is_gru = kind == "lstm", kind == "gru"
    addresses = map(address, (
        weights[0], weights[1], weights[2] if is_lstm else None, panels, values[2], values[3] if is_lstm else None, output,
        workspace if saved else None, into_gates, into_hidden if is_gru else into_gates, to_state,
        carried if is_lstm or is_gru else None,
    ))  # fmt: skip
    passes = (BackPass * 1)(BackPass(steps, batch, hidden, reverse, *addresses))
    pointers = [(ctypes.c_void_p * 1)(array.ctypes.data) for array in (values[1], panels)]
    kernels.call(BACK[kind], passes, 1, *pointers)
    found = (into_gates * moves[0]).sum() + (to_state * moves[2]).sum()
    found += (carried * moves[3]).sum() if is_lstm else (into_hidden * moves[4]).sum() if is_gru else 0.0
    wanted = (loss(NUDGE) - loss(-NUDGE)) / (2 * NUDGE)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)
