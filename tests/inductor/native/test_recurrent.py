"""rushlight/recurrent.h against float64, for one pass and for several at the same time."""

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
