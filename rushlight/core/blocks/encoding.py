"""Numbers as blocks: the scales of each block are chosen by its range, integers are the nearest.

In: float32 (..., elements of a block), finite. Out: bytes (..., bytes of a block), uint8. Integers are counted from scales as
they are stored, so that what rounding a scale changes is made good.
"""

from __future__ import annotations

import numpy as np

from rushlight.core.blocks.fields import float_bytes, nibbles, packed_pairs, words_of_bits

HALF_MOST = 65504.0  # the largest float16
_LEAST_SCALE = np.float32(2.0**-23)  # no group has a smaller scale, as in torchao


def _stored(values: np.ndarray) -> np.ndarray:
    """Scales as float16 holds them, float32."""
    return np.clip(values, -HALF_MOST, HALF_MOST).astype(np.float16).astype(np.float32)


def _counted(numbers: np.ndarray, scale: np.ndarray, least: int, most: int) -> np.ndarray:
    """The nearest integers times a scale, of [least, most]; those of a scale 0 are 0."""
    steps = np.divide(numbers, scale, out=np.zeros_like(numbers), where=scale != 0)
    return np.clip(np.rint(steps), least, most)


def _extreme(numbers: np.ndarray) -> np.ndarray:
    """The number farthest from 0 in each block, with its sign, (..., 1)."""
    place = np.abs(numbers).argmax(axis=-1, keepdims=True)
    return np.take_along_axis(numbers, place, axis=-1)


def q8_0(numbers: np.ndarray) -> np.ndarray:
    """d * q, q of [-127, 127]."""
    scale = _stored(np.abs(numbers).max(axis=-1, keepdims=True) / 127)
    integers = _counted(numbers, scale, -127, 127).astype(np.int8).view(np.uint8)
    return np.concatenate([float_bytes(scale), integers], axis=-1)


def _around(numbers: np.ndarray, middle: int) -> tuple[np.ndarray, np.ndarray]:
    """d and q of d * (q - middle), where the number farthest from 0 has the integer 0; uint8."""
    scale = _stored(_extreme(numbers) / -middle)
    return scale, (_counted(numbers, scale, -middle, middle - 1) + middle).astype(np.uint8)


def _above(numbers: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """d, m and q of d * q + m, q of [0, most]; uint8."""
    least = _stored(numbers.min(axis=-1, keepdims=True))
    scale = _stored((numbers.max(axis=-1, keepdims=True) - least) / most)
    return scale, least, _counted(numbers - least, scale, 0, most).astype(np.uint8)


def q4_0(numbers: np.ndarray) -> np.ndarray:
    """d * (q - 8)."""
    scale, integers = _around(numbers, 8)
    return np.concatenate([float_bytes(scale), nibbles(integers)], axis=-1)


def q5_0(numbers: np.ndarray) -> np.ndarray:
    """d * (q - 16)."""
    scale, integers = _around(numbers, 16)
    return np.concatenate([float_bytes(scale), words_of_bits(integers >> 4), nibbles(integers & 15)], axis=-1)


def q4_1(numbers: np.ndarray) -> np.ndarray:
    """d * q + m, q of 4 bits."""
    scale, least, integers = _above(numbers, 15)
    return np.concatenate([float_bytes(scale), float_bytes(least), nibbles(integers)], axis=-1)


def q5_1(numbers: np.ndarray) -> np.ndarray:
    """d * q + m, q of 5 bits."""
    scale, least, integers = _above(numbers, 31)
    bits = words_of_bits(integers >> 4)
    return np.concatenate([float_bytes(scale), float_bytes(least), bits, nibbles(integers & 15)], axis=-1)


def int4(numbers: np.ndarray) -> np.ndarray:
    """scale * q + offset, q of 4 bits, with the scale and the offset in float32."""
    least = numbers.min(axis=-1, keepdims=True)
    scale = np.maximum((numbers.max(axis=-1, keepdims=True) - least) / np.float32(15), _LEAST_SCALE)
    integers = _counted(numbers - least, scale, 0, 15).astype(np.uint8)
    parts = nibbles(integers.reshape(*numbers.shape[:-1], -1, 32)).reshape(*numbers.shape[:-1], -1)
    head = np.concatenate([scale, least], axis=-1).astype("<f4").view(np.uint8)
    return np.concatenate([head, parts], axis=-1)


def _eighths(numbers: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The first 16 bytes of a block of eight parts, and its integers (..., 8, 32), uint8."""
    parts = numbers.reshape(*numbers.shape[:-1], 8, 32)
    down = np.maximum(-parts.min(axis=-1), 0)
    up = (parts.max(axis=-1) + down) / most
    scale, offset = _stored(up.max(axis=-1, keepdims=True) / 63), _stored(down.max(axis=-1, keepdims=True) / 63)
    scales, least = (_counted(each, by, 0, 63).astype(np.uint8) for each, by in ((up, scale), (down, offset)))
    integers = _counted(parts + (offset * least)[..., None], (scale * scales)[..., None], 0, most).astype(np.uint8)
    return np.concatenate([float_bytes(scale), float_bytes(offset), packed_pairs(scales, least)], axis=-1), integers


def _quarters(integers: np.ndarray) -> np.ndarray:
    """The lower bits of eight parts, of which two share their bytes, (..., 128)."""
    pairs = (integers & 15).reshape(*integers.shape[:-2], 4, 64)
    return nibbles(pairs).reshape(*integers.shape[:-2], 128)


def q4_k(numbers: np.ndarray) -> np.ndarray:
    """d * scale * q - m * least for each of eight parts, q of 4 bits."""
    head, integers = _eighths(numbers, 15)
    return np.concatenate([head, _quarters(integers)], axis=-1)


def q5_k(numbers: np.ndarray) -> np.ndarray:
    """d * scale * q - m * least for each of eight parts, q of 5 bits."""
    head, integers = _eighths(numbers, 31)
    high = np.bitwise_or.reduce((integers >> 4) << np.arange(8, dtype=np.uint8)[:, None], axis=-2)
    return np.concatenate([head, high, _quarters(integers)], axis=-1)


def q6_k(numbers: np.ndarray) -> np.ndarray:
    """d * scale * (q - 32) for each of sixteen parts, q of 6 bits."""
    parts = numbers.reshape(*numbers.shape[:-1], 16, 16)
    wanted = _extreme(parts)[..., 0] / -32
    scale = _stored(_extreme(wanted) / -128)
    scales = _counted(wanted, scale, -128, 127)
    integers = (_counted(parts, (scale * scales)[..., None], -32, 31) + 32).astype(np.uint8)
    quarters = integers.reshape(*numbers.shape[:-1], 2, 4, 32)
    low = quarters & 15
    low = np.concatenate([low[..., 0, :] | low[..., 2, :] << 4, low[..., 1, :] | low[..., 3, :] << 4], axis=-1)
    high = np.bitwise_or.reduce((quarters >> 4) << np.arange(0, 8, 2, dtype=np.uint8)[:, None], axis=-2)
    lead = numbers.shape[:-1]
    head = [low.reshape(*lead, 128), high.reshape(*lead, 64), scales.astype(np.int8).view(np.uint8)]
    return np.concatenate([*head, float_bytes(scale)], axis=-1)
