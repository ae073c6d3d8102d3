"""rushlight/lstm.h against float64, for one pass and for several at the same time."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.inductor.native.native_build import aligned

GATES = 4


class Pass(ctypes.Structure):
    """rl::lstm_pass."""

    _fields_ = [
        *((name, ctypes.c_long) for name in ("steps", "batch", "hidden")), ("reverse", ctypes.c_bool),
        *((name, ctypes.c_void_p) for name in ("gates", "panels", "state", "cell", "output", "last_cell", "workspace")),
    ]  # fmt: skip


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def exact(gates, weight, state, cell, reverse):
    """The output, the last cell, and gates and cells of all steps."""
    steps, batch, hidden = len(gates), *state.shape
    gates, weight, state, cell = (array.astype(np.float64) for array in (gates, weight, state, cell))
    output, saved = np.empty((steps, batch, hidden)), np.empty((steps, batch, 5 * hidden))
    for time in range(steps)[:: -1 if reverse else 1]:
        parts = np.split(gates[time] + state @ weight.T, GATES, axis=1)
        admit, forget, candidate, show = sigmoid(parts[0]), sigmoid(parts[1]), np.tanh(parts[2]), sigmoid(parts[3])
        cell = forget * cell + admit * candidate
        output[time] = state = show * np.tanh(cell)
        saved[time] = np.concatenate([admit, forget, candidate, show, cell], axis=1)
    return output, cell, saved


@pytest.mark.parametrize("saves", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("steps", "batch", "hidden"), [(1, 1, 1), (5, 3, 17), (4, 13, 64), (3, 1, 160), (2, 30, 33)])
def test_lstm(kernels, steps, batch, hidden, count, saves):
    generator = np.random.default_rng(0)
    passes, kept, wanted = (Pass * count)(), [], []
    for number in range(count):
        shapes = (steps, batch, GATES * hidden), (GATES * hidden, hidden), (batch, hidden), (batch, hidden)
        gates, weight, state, cell = (generator.normal(size=shape).astype(np.float32) for shape in shapes)
        panels = aligned(kernels.call("gate_panels_floats", hidden, result=ctypes.c_long))
        shapes = (steps, batch, hidden), (batch, hidden), (steps, batch, 5 * hidden)
        results = [np.full(shape, np.nan, np.float32) for shape in shapes]
        addresses = [array.ctypes.data for array in (gates, panels, state, cell, *results[: 2 + saves])]
        passes[number] = Pass(steps, batch, hidden, number % 2 == 1, *addresses)
        kept.append((gates, weight, state, cell, panels, results))
        wanted.append(exact(gates, weight, state, cell, number % 2 == 1))
    pointers = [(ctypes.c_void_p * count)(*[item[place].ctypes.data for item in kept]) for place in (1, 4)]
    kernels.call("lstm_of", passes, count, *pointers)
    for (*_, results), want in zip(kept, wanted, strict=True):
        for found, expected in zip(results[: 2 + saves], want, strict=False):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)
        assert saves or np.isnan(results[2]).all()
