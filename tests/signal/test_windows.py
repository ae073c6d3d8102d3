"""Window functions against SciPy's and their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import windows as reference

import rushlight as rl
from rushlight.signal import windows

SAME_NAMES = ("bartlett", "blackman", "cosine", "hamming", "hann", "nuttall")
WITH_OPTIONS = {"exponential": {"tau": 2.5}, "gaussian": {"std": 1.5}, "kaiser": {"beta": 4.0}, "general_hamming": {"alpha": 0.6},
                "general_cosine": {"a": [0.5, 0.3, 0.2]}}  # fmt: skip


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", [*SAME_NAMES, *WITH_OPTIONS])
def test_values(name: str, sym: bool):
    options = WITH_OPTIONS.get(name, {})
    for count in (0, 1, 2, 7, 8):
        got = getattr(windows, name)(count, sym=sym, dtype=rl.float64, **options)
        want = getattr(reference, name)(count, sym=sym, **options)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
        assert getattr(windows, name)(count, sym=sym, **options).dtype is rl.float32


def test_a_window_may_want_a_gradient():
    assert windows.hann(4, requires_grad=True).is_leaf and windows.hann(4, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: windows.hamming(-1), ValueError, "requires non-negative window length, got M=-1"),
        (lambda: windows.hann(3, dtype=rl.float16), ValueError, "expects float32 or float64 dtypes, got: torch.float16"),
        (lambda: windows.kaiser(3, beta=-1), ValueError, "beta must be non-negative, got: -1"),
        (lambda: windows.gaussian(3, std=0), ValueError, "Standard deviation must be positive, got: 0"),
        (lambda: windows.exponential(3, tau=0), ValueError, "Tau must be positive, got: 0"),
        (lambda: windows.exponential(3, center=1), ValueError, "Center must be None for symmetric windows"),
        (lambda: windows.general_cosine(3, a=[]), ValueError, "Coefficients cannot be empty"),
        (lambda: windows.general_cosine(3, a=2), TypeError, "Coefficients must be a list/tuple"),
        (lambda: rl.hann_window(-1), RuntimeError, "requires non-negative window_length, got window_length=-1"),
        (lambda: rl.hann_window(3, dtype=rl.int64), RuntimeError, "expects floating point dtypes"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann"])
def test_window_operators(name: str):
    for periodic in (True, False):
        got = getattr(rl, f"{name}_window")(6, periodic, dtype=rl.float64)
        np.testing.assert_allclose(got.numpy(), getattr(reference, name)(6, sym=not periodic), atol=1e-12)
    assert getattr(rl, f"{name}_window")(1).tolist() == [1.0] and getattr(rl, f"{name}_window")(0).shape == (0,)


def test_window_operators_with_parameters():
    np.testing.assert_allclose(rl.kaiser_window(6, True, 3.0).numpy(), reference.kaiser(6, 3.0, sym=False), rtol=1e-5)
    assert rl.hamming_window(4, True, 0.5, 0.5).tolist() == rl.hann_window(4).tolist()
