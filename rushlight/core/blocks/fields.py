"""Fields of blocks: encodings of numbers that several layouts share."""

from __future__ import annotations

import numpy as np


def floats(blocks: np.ndarray, at: int) -> np.ndarray:
    """Return the float16 at byte `at` of each block, as float32 (..., 1)."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view("<f2").astype(np.float32)


def float_bytes(values: np.ndarray) -> np.ndarray:
    """Return float16 (..., 1) as bytes (..., 2)."""
    return np.ascontiguousarray(values, "<f2").view(np.uint8)


def low_and_high(packed: np.ndarray) -> np.ndarray:
    """Return the lower four bits of all bytes, then the upper ones, uint8."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def nibbles(integers: np.ndarray) -> np.ndarray:
    """Return the inverse of `low_and_high`."""
    half = integers.shape[-1] // 2
    return integers[..., :half] | integers[..., half:] << 4


def bits_of_words(words: np.ndarray) -> np.ndarray:
    """Return the 32 bits of each four-byte word, lowest first, uint8."""
    return np.unpackbits(words, axis=-1, bitorder="little")


def words_of_bits(bits: np.ndarray) -> np.ndarray:
    """Return the inverse of `bits_of_words`."""
    return np.packbits(bits, axis=-1, bitorder="little")


def six_bit_pairs(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unpack eight scales and eight minima of 6 bits from 12 bytes; each result is uint8 (..., 8)."""
    first, second, third = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=-1)
    least = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=-1)
    return scales, least


def packed_pairs(scales: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return the inverse of `six_bit_pairs`, uint8 (..., 12)."""
    first = scales[..., :4] | scales[..., 4:] >> 4 << 6
    second = least[..., :4] | least[..., 4:] >> 4 << 6
    third = scales[..., 4:] & 15 | (least[..., 4:] & 15) << 4
    return np.concatenate([first, second, third], axis=-1)
