"""Quantize and dequantize arrays, with the arithmetic of ATen's quantizers.

In: NumPy arrays, scales and zero points. Out: NumPy arrays. An element x becomes round(x / scale + zero point), halves to even,
clamped to the dtype's limits; dequantized it is (q - zero point) * scale, in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rushlight.core.dtype import dtype, qint8, qint32, quint2x4, quint4x2, quint8
from rushlight.core.qscheme import per_channel_affine, per_channel_affine_float_qparams, per_tensor_affine, qscheme
from rushlight.ops.quantization_parameters import choose
from rushlight.quantized import native

__all__ = [
    "ChannelQuantizer", "Quantizer", "TensorQuantizer", "choose", "dequantize", "dequantize_rounding_once", "limits",
    "quantize", "quantize_rounding_first", "to_integers",
]  # fmt: skip

_NARROW = {quint4x2: (0, 15), quint2x4: (0, 3)}


def _is_byte(kind: dtype) -> bool:
    """Return whether a dtype uses all values of a byte."""
    return kind in (quint8, qint8)


@functools.cache
def limits(kind: dtype) -> tuple[int, int]:
    """Return the smallest and the largest integer of a quantized dtype."""
    if kind in _NARROW:
        return _NARROW[kind]
    info = np.iinfo(kind.numpy)
    return int(info.min), int(info.max)


def quantize_rounding_first(values: np.ndarray, scale: float, zero_point: int, kind: dtype) -> np.ndarray:
    """Quantize float32 values, adding the zero point after rounding: halves round differently if it is odd.

    ATen's vectorized kernels of sums, products and activations round in this way; `quantize_per_tensor` and others round as in
    `quantize`.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = np.rint(values * inverse_of(scale))
        return to_integers((rounded.astype(np.float64) if kind is qint32 else rounded) + zero_point, kind)


def to_integers(values: np.ndarray, kind: dtype) -> np.ndarray:
    """Round scaled and shifted numbers to integers of a dtype. NaN becomes the largest integer."""
    low, high = limits(kind)
    rounded = np.asarray(np.rint(values))
    return np.maximum(np.fmin(rounded, high, out=rounded), low, out=rounded).astype(kind.numpy)


def inverse_of(scale: float | np.ndarray) -> np.ndarray:
    """Return the inverse of a scale, in float32."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.float32(1) / np.asarray(scale, np.float32)


def by_table(integers: np.ndarray, kind: dtype, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply `function` to integers, giving the same dtype. For arrays with more elements than a byte has values, look up its
    results in a table."""
    if kind is qint32 or integers.size <= 256:
        return function(integers)
    low, high = limits(kind)
    table = function(np.arange(low, high + 1).astype(kind.numpy))
    made = native.look_up(integers, table) if len(table) == 256 else None
    return table[integers.astype(np.int16) - low] if made is None else made


def quantize(values: np.ndarray, scale: float | np.ndarray, zero_point: float | np.ndarray, kind: dtype) -> np.ndarray:
    """Quantize float32 values. `scale` and `zero_point` may be arrays that broadcast."""
    with np.errstate(invalid="ignore", over="ignore"):
        # Round product and sum once, like a fused multiply-add.
        exact = values.astype(np.float64) * inverse_of(scale).astype(np.float64) + zero_point
        return to_integers(exact if kind is qint32 else exact.astype(np.float32), kind)


def dequantize(integers: np.ndarray, scale: float | np.ndarray, zero_point: float | np.ndarray) -> np.ndarray:
    """Return the float32 values of integers."""
    wide = np.int64 if integers.dtype == np.int32 else np.int32
    if isinstance(zero_point, np.ndarray) and zero_point.dtype.kind == "f":
        return (integers.astype(np.float32) - zero_point) * np.asarray(scale, np.float32)
    shifted = integers.astype(wide) - np.asarray(zero_point).astype(wide)
    return shifted.astype(np.float32) * np.asarray(scale, np.float32)


def dequantize_rounding_once(integers: np.ndarray, scale: float, zero_point: int) -> np.ndarray:
    """Return the float32 values of integers, as a fused multiply-add of the scale and of -scale * zero point.

    ATen's vectorized kernels of sums and activations dequantize in this way; others as in `dequantize`.
    """
    factor = np.float32(scale)
    offset = factor * np.float32(zero_point)
    with np.errstate(invalid="ignore", over="ignore"):
        return (integers.astype(np.float32) * np.float64(factor) - np.float64(offset)).astype(np.float32)


@dataclass(frozen=True)
class TensorQuantizer:
    """One scale and one zero point for all elements."""

    scale: float
    zero_point: int

    scheme = per_tensor_affine

    def quantize(self, values: np.ndarray, kind: dtype) -> np.ndarray:
        """Quantize float32 values to integers of a dtype."""
        made = native.quantize(values, float(inverse_of(self.scale)), self.zero_point, kind.numpy) if _is_byte(kind) else None
        return quantize(values, self.scale, self.zero_point, kind) if made is None else made

    def dequantize(self, integers: np.ndarray) -> np.ndarray:
        """Return the values of integers."""
        made = native.dequantize(integers, self.scale, self.zero_point)
        return dequantize(integers, self.scale, self.zero_point) if made is None else made

    def equals(self, other: Quantizer) -> bool:
        """Return whether both quantizers map equal integers to equal numbers."""
        return self == other


@dataclass(frozen=True, eq=False)
class ChannelQuantizer:
    """A scale and a zero point for each index along `axis`: float64 and int64, or both float32 (`float_qparams`)."""

    scales: np.ndarray
    zero_points: np.ndarray
    axis: int

    @property
    def scheme(self) -> qscheme:
        """`per_channel_affine`, or `per_channel_affine_float_qparams` for floating zero points."""
        return per_channel_affine_float_qparams if self.zero_points.dtype.kind == "f" else per_channel_affine

    def _broadcast_along(self, values: np.ndarray, rank: int) -> np.ndarray:
        return values.reshape((-1, *(1,) * (rank - self.axis - 1)))

    def quantize(self, values: np.ndarray, kind: dtype) -> np.ndarray:
        """Quantize float32 values to integers of a dtype."""
        rank = values.ndim
        return quantize(values, self._broadcast_along(self.scales, rank), self._broadcast_along(self.zero_points, rank), kind)

    def dequantize(self, integers: np.ndarray) -> np.ndarray:
        """Return the values of integers."""
        rank = integers.ndim
        return dequantize(integers, self._broadcast_along(self.scales, rank), self._broadcast_along(self.zero_points, rank))

    def on_axis(self, axis: int) -> ChannelQuantizer:
        """Return a quantizer with the same scales along another axis."""
        return ChannelQuantizer(self.scales, self.zero_points, axis)

    def equals(self, other: Quantizer) -> bool:
        """Return whether both quantizers map equal integers to equal numbers."""
        if not isinstance(other, ChannelQuantizer) or self.axis != other.axis:
            return False
        return np.array_equal(self.scales, other.scales) and np.array_equal(self.zero_points, other.zero_points)


Quantizer = TensorQuantizer | ChannelQuantizer
