"""Casts to and from storage-only dtypes: 8-bit floats, and complex numbers of two halves.

In: arrays of any dtype; `complex32` arrays have a field for each part. Out: an array of the other dtype. Numbers go through
float32, as in torch, and round to nearest, ties to even.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import (
    FLOAT8_TYPES,
    complex32,
    float8_e4m3fn,
    float8_e8m0fnu,
)
from rushlight.ops.cpu.quiet import quietly


def _to_float32(array: np.ndarray) -> np.ndarray:
    array = FROM_NARROW[array.dtype](array) if array.dtype in FROM_NARROW else array
    return np.asarray(quietly((array.real if array.dtype.kind == "c" else array).astype, np.float32))


def _to_e4m3fn(array: np.ndarray) -> np.ndarray:
    """Convert to e4m3fn with saturation: numbers that are too large, and infinity, become the largest number."""
    numbers = _to_float32(array)
    return quietly(np.asarray(np.clip(numbers, -448, 448)).astype, float8_e4m3fn.numpy)


def _to_e8m0fnu(array: np.ndarray) -> np.ndarray:
    """Convert to e8m0. The format has only an exponent: the sign is dropped, and 0 becomes the smallest number."""
    numbers = np.abs(_to_float32(array), out=np.empty(array.shape, np.float32))
    made = quietly(numbers.astype, float8_e8m0fnu.numpy)
    np.copyto(made.view(np.uint8), 0, where=numbers == 0)
    return made


def _to_complex32(array: np.ndarray) -> np.ndarray:
    array = FROM_NARROW[array.dtype](array) if array.dtype in FROM_NARROW else array
    made = np.empty(array.shape, complex32.numpy)
    made["real"] = quietly(array.real.astype, np.float16)
    made["imag"] = quietly(array.imag.astype, np.float16)
    return made


def _from_complex32(array: np.ndarray) -> np.ndarray:
    made = np.empty(array.shape, np.complex64)
    made.real, made.imag = array["real"], array["imag"]
    return made


def _from_float8(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32)


def _to_float8(kind: np.dtype) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: quietly(_to_float32(array).astype, kind)


FROM_NARROW: dict[np.dtype, Callable[[np.ndarray], np.ndarray]] = {
    **{kind.numpy: _from_float8 for kind in FLOAT8_TYPES}, complex32.numpy: _from_complex32,
}  # fmt: skip
TO_NARROW: dict[np.dtype, Callable[[np.ndarray], np.ndarray]] = {
    **{kind.numpy: _to_float8(kind.numpy) for kind in FLOAT8_TYPES},
    float8_e4m3fn.numpy: _to_e4m3fn, float8_e8m0fnu.numpy: _to_e8m0fnu,
    complex32.numpy: _to_complex32,
}  # fmt: skip
