"""Choose the scale and the zero point for a range of real numbers, like ATen's `ChooseQuantizationParams`."""

from __future__ import annotations

import math

import numpy as np

_MIN_SCALE = 6.1e-5


def choose(low: float, high: float, smallest: int, largest: int, preserve_sparsity: bool = False) -> tuple[float, int]:
    """Return the scale and the zero point with which integers from `smallest` to `largest` cover `low` to `high` and represent
    0 exactly; RuntimeError for NaN.

    The zero point is computed from the end of the range with the smaller error, and rounded. With `preserve_sparsity`, a range
    of both signs is made symmetric. This follows gemmlowp's reference, as fbgemm does.
    """
    low, high = min(float(np.float32(low)), 0.0), max(float(np.float32(high)), 0.0)
    if math.isnan(low) or math.isnan(high):
        raise RuntimeError(f"In ChooseQuantizationParams, min should be less than or equal to max: got {low} and {high}")
    if preserve_sparsity and low < 0 < high:
        middle = (largest - smallest) // 2
        reach = max(abs(low / (-middle - 1)), abs(high / middle))
        low, high = float(np.float32(reach * (-middle - 1))), float(np.float32(reach * middle))
    scale = (high - low) / (largest - smallest)
    if not _is_usable(scale):
        scale = 0.1
    if scale < _MIN_SCALE:
        low, high, scale = _widen_range(low, high, scale, smallest, largest)
    from_low, from_high = smallest - low / scale, largest - high / scale
    error_low, error_high = abs(smallest) - abs(low / scale), abs(largest) - abs(high / scale)
    initial = from_low if error_low < error_high else from_high
    if preserve_sparsity and low < 0 < high:
        initial = (smallest + largest) / 2
    return scale, _nudge(initial, smallest, largest)


def _nudge(initial: float, smallest: int, largest: int) -> int:
    """Return a zero point, rounded and clamped. For an infinite range it is NaN, which C converts to the least int32."""
    if math.isnan(initial):
        return -(2**31)
    return smallest if initial < smallest else largest if initial > largest else round(initial)


def _is_usable(scale: float) -> bool:
    """Return whether a scale and its inverse are finite, nonzero float32 numbers."""
    with np.errstate(divide="ignore", over="ignore"):
        return 0 < abs(float(np.float32(scale))) and math.isfinite(float(np.float32(1) / np.float32(scale)))


def _widen_range(low: float, high: float, scale: float, smallest: int, largest: int) -> tuple[float, float, float]:
    """Return a range that is too narrow for its scale, widened for the smallest scale allowed."""
    if low == 0:
        return low, _MIN_SCALE * (largest - smallest), _MIN_SCALE
    if high == 0:
        return -_MIN_SCALE * (largest - smallest), high, _MIN_SCALE
    factor = _MIN_SCALE / scale
    return low * factor, high * factor, _MIN_SCALE
