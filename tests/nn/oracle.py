"""Runs code with Rushlight and with PyTorch on the same numbers, and compares results and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import rushlight
from rushlight import nn as _nn  # noqa: F401  (makes rushlight.nn an attribute)


def arrays(*shapes: Sequence[int], seed: int = 0, dtype=np.float64) -> list[np.ndarray]:
    """Normal numbers in each of the shapes."""
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


def flat(result) -> list:
    """The tensors in nested tuples."""
    if isinstance(result, list | tuple):
        return [tensor for part in result for tensor in flat(part)]
    return [] if result is None else [result]


def run(library, function: Callable, inputs: Sequence[np.ndarray], gradients: bool) -> list[np.ndarray]:
    """Outputs of `function(library, *tensors)`, then gradients of the floating inputs for a fixed weighting of them."""
    tensors = [library.from_numpy(np.array(value)) for value in inputs]
    if gradients:
        tensors = [t.requires_grad_() if t.is_floating_point() else t for t in tensors]
    # In-place variants need a non-leaf.
    outputs = flat(function(library, *[t * 1 if gradients and t.requires_grad else t for t in tensors]))
    results = [np.array(output.detach().numpy()) for output in outputs]
    if gradients:
        total = 0
        for output in outputs:
            if output.requires_grad:
                weights = np.cos(np.arange(output.numel()) + 1.0).reshape(tuple(output.shape))
                total = total + (output * library.from_numpy(weights).to(output.dtype)).sum()
        total.backward()
        leaves = [t for t in tensors if t.requires_grad]
        results += [np.zeros(tuple(t.shape)) if t.grad is None else t.grad.numpy() for t in leaves]
    return results


def agree(
    function: Callable, *inputs: np.ndarray, gradients: bool = True, rtol: float = 1e-8, atol: float = 1e-9
) -> None:
    """Asserts that `function(library, *tensors)` returns the same in both libraries."""
    torch = pytest.importorskip("torch")
    expected = run(torch, function, inputs, gradients)
    actual = run(rushlight, function, inputs, gradients)
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)


def same_error(function: Callable, *inputs: np.ndarray) -> str:
    """Asserts that both libraries raise the same type of exception; returns Rushlight's message."""
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:
        run(torch, function, inputs, False)
    with pytest.raises(theirs.type) as mine:
        run(rushlight, function, inputs, False)
    return str(mine.value)


def same(function: Callable, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Asserts that `function(library)`, called after seeding, returns the same nested tensors, numbers and texts in both."""
    torch = pytest.importorskip("torch")
    results = []
    for library in (torch, rushlight):
        library.manual_seed(0)
        results.append(list(_plain(function(library))))
    expected, actual = results
    assert len(actual) == len(expected), f"{actual} instead of {expected}"
    for theirs, mine in zip(expected, actual, strict=True):
        if isinstance(theirs, np.ndarray):
            assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)
        else:
            assert mine == theirs


def _plain(value) -> Sequence:
    if isinstance(value, list | tuple):
        for part in value:
            yield from _plain(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _plain(part)
    elif hasattr(value, "detach"):
        yield np.array(value.detach().numpy())
    else:
        yield value
