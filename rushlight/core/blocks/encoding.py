"""Quantize numbers to blocks: each block's range gives its scales, and numbers round to the nearest integer.

In: float32 (..., elements of a block), finite. Out: bytes (..., bytes of a block), uint8. Integers are computed from the scales
as stored, which compensates for the rounding of the scales.
"""

from __future__ import annotations

import numpy as np

from rushlight.core.blocks.fields import float_bytes, nibbles, packed_pairs, words_of_bits

FLOAT16_MAX = 65504.0  # the largest float16
_MIN_SCALE = np.float32(2.0**-23)  # the smallest scale of a group, as in torchao


def _round_to_float16(values: np.ndarray) -> np.ndarray:
    """Return the scales after rounding to float16, as float32."""
    return np.clip(values, -FLOAT16_MAX, FLOAT16_MAX).astype(np.float16).astype(np.float32)


def _quantize(numbers: np.ndarray, scale: np.ndarray, least: int, most: int) -> np.ndarray:
    """Return the integers in [least, most] nearest to numbers / scale; 0 where the scale is 0."""
    steps = np.divide(numbers, scale, out=np.zeros_like(numbers), where=scale != 0)
    return np.clip(np.rint(steps), least, most)


def _largest_magnitude(numbers: np.ndarray) -> np.ndarray:
    """Return the number of largest magnitude in each block, with its sign, (..., 1)."""
    place = np.abs(numbers).argmax(axis=-1, keepdims=True)
    return np.take_along_axis(numbers, place, axis=-1)


def q8_0(numbers: np.ndarray) -> np.ndarray:
    """Encode as d * q, q in [-127, 127]."""
    scale = _round_to_float16(np.abs(numbers).max(axis=-1, keepdims=True) / 127)
    integers = _quantize(numbers, scale, -127, 127).astype(np.int8).view(np.uint8)
    return np.concatenate([float_bytes(scale), integers], axis=-1)


def _quantize_symmetric(numbers: np.ndarray, middle: int) -> tuple[np.ndarray, np.ndarray]:
    """Return d and q of d * (q - middle), uint8. The number of largest magnitude gets q = 0."""
    scale = _round_to_float16(_largest_magnitude(numbers) / -middle)
    return scale, (_quantize(numbers, scale, -middle, middle - 1) + middle).astype(np.uint8)


def _quantize_affine(numbers: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return d, m and q of d * q + m, q in [0, most], uint8."""
    least = _round_to_float16(numbers.min(axis=-1, keepdims=True))
    scale = _round_to_float16((numbers.max(axis=-1, keepdims=True) - least) / most)
    return scale, least, _quantize(numbers - least, scale, 0, most).astype(np.uint8)


def q4_0(numbers: np.ndarray) -> np.ndarray:
    """Encode as d * (q - 8)."""
    scale, integers = _quantize_symmetric(numbers, 8)
    return np.concatenate([float_bytes(scale), nibbles(integers)], axis=-1)


def q5_0(numbers: np.ndarray) -> np.ndarray:
    """Encode as d * (q - 16)."""
    scale, integers = _quantize_symmetric(numbers, 16)
    return np.concatenate([float_bytes(scale), words_of_bits(integers >> 4), nibbles(integers & 15)], axis=-1)


def q4_1(numbers: np.ndarray) -> np.ndarray:
    """Encode as d * q + m, q of 4 bits."""
    scale, least, integers = _quantize_affine(numbers, 15)
    return np.concatenate([float_bytes(scale), float_bytes(least), nibbles(integers)], axis=-1)


def q5_1(numbers: np.ndarray) -> np.ndarray:
    """Encode as d * q + m, q of 5 bits."""
    scale, least, integers = _quantize_affine(numbers, 31)
    bits = words_of_bits(integers >> 4)
    return np.concatenate([float_bytes(scale), float_bytes(least), bits, nibbles(integers & 15)], axis=-1)


def int4(numbers: np.ndarray) -> np.ndarray:
    """Encode as scale * q + offset, q of 4 bits, with scale and offset in float32."""
    least = numbers.min(axis=-1, keepdims=True)
    scale = np.maximum((numbers.max(axis=-1, keepdims=True) - least) / np.float32(15), _MIN_SCALE)
    integers = _quantize(numbers - least, scale, 0, 15).astype(np.uint8)
    parts = nibbles(integers.reshape(*numbers.shape[:-1], -1, 32)).reshape(*numbers.shape[:-1], -1)
    head = np.concatenate([scale, least], axis=-1).astype("<f4").view(np.uint8)
    return np.concatenate([head, parts], axis=-1)


def _encode_eight_groups(numbers: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first 16 bytes of a block of eight groups, and its integers (..., 8, 32), uint8."""
    parts = numbers.reshape(*numbers.shape[:-1], 8, 32)
    down = np.maximum(-parts.min(axis=-1), 0)
    up = (parts.max(axis=-1) + down) / most
    scale = _round_to_float16(up.max(axis=-1, keepdims=True) / 63)
    offset = _round_to_float16(down.max(axis=-1, keepdims=True) / 63)
    scales, least = (_quantize(each, by, 0, 63).astype(np.uint8) for each, by in ((up, scale), (down, offset)))
    integers = _quantize(parts + (offset * least)[..., None], (scale * scales)[..., None], 0, most).astype(np.uint8)
    return np.concatenate([float_bytes(scale), float_bytes(offset), packed_pairs(scales, least)], axis=-1), integers


def _pack_quarters(integers: np.ndarray) -> np.ndarray:
    """Return the lower bits of eight groups packed two groups to a byte, (..., 128)."""
    pairs = (integers & 15).reshape(*integers.shape[:-2], 4, 64)
    return nibbles(pairs).reshape(*integers.shape[:-2], 128)


def q4_k(numbers: np.ndarray) -> np.ndarray:
    """Encode as d * scale * q - m * least for each of eight groups, q of 4 bits."""
    head, integers = _encode_eight_groups(numbers, 15)
    return np.concatenate([head, _pack_quarters(integers)], axis=-1)


def q5_k(numbers: np.ndarray) -> np.ndarray:
    """Encode as d * scale * q - m * least for each of eight groups, q of 5 bits."""
    head, integers = _encode_eight_groups(numbers, 31)
    high = np.bitwise_or.reduce((integers >> 4) << np.arange(8, dtype=np.uint8)[:, None], axis=-2)
    return np.concatenate([head, high, _pack_quarters(integers)], axis=-1)


def q6_k(numbers: np.ndarray) -> np.ndarray:
    """Encode as d * scale * (q - 32) for each of sixteen groups."""
    parts = numbers.reshape(*numbers.shape[:-1], 16, 16)
    wanted = _largest_magnitude(parts)[..., 0] / -32
    scale = _round_to_float16(_largest_magnitude(wanted) / -128)
    scales = _quantize(wanted, scale, -128, 127)
    integers = (_quantize(parts, (scale * scales)[..., None], -32, 31) + 32).astype(np.uint8)
    quarters = integers.reshape(*numbers.shape[:-1], 2, 4, 32)
    low = quarters & 15
    low = np.concatenate([low[..., 0, :] | low[..., 2, :] << 4, low[..., 1, :] | low[..., 3, :] << 4], axis=-1)
    high = np.bitwise_or.reduce((quarters >> 4) << np.arange(0, 8, 2, dtype=np.uint8)[:, None], axis=-2)
    lead = numbers.shape[:-1]
    head = [low.reshape(*lead, 128), high.reshape(*lead, 64), scales.astype(np.int8).view(np.uint8)]
    return np.concatenate([*head, float_bytes(scale)], axis=-1)
