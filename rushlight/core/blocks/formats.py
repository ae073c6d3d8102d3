"""The block layouts: how integers and scales are packed into bytes, and how to decode them.

In: bytes (..., blocks, bytes of a block). Out: float32 (..., blocks, elements of a block), and back. Layouts are those of GGUF
(https://github.com/ggml-org/ggml, docs/gguf.md), little-endian. Each number is d * q, d * (q - middle) or d * q + m in float32.
The q are integers. The scales d and m are float16, in some layouts multiplied by a 6-bit or 8-bit integer. Formats such as
"int4_128" are this library's own: they cut a row into groups with d and m in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rushlight.core.blocks import encoding
from rushlight.core.blocks.fields import bits_of_words, floats, low_and_high, six_bit_pairs

SMALL, LARGE = 32, 256  # numbers of elements in a block


@dataclass(frozen=True)
class BlockFormat:
    """A block layout.

    Attributes:
        name: such as "q4_k".
        number: the type's number in GGUF files, or one above 200 for layouts that GGUF lacks.
        elements: elements per block.
        nbytes: bytes per block.
        decode: bytes (..., nbytes) to float32 (..., elements).
        encode: the inverse, rounding to the nearest value that the block's scales allow.
    """

    name: str
    number: int
    elements: int
    nbytes: int
    decode: Callable[[np.ndarray], np.ndarray]
    encode: Callable[[np.ndarray], np.ndarray]

    @property
    def in_gguf(self) -> bool:
        """Return whether GGUF files have this layout."""
        return self.number < 200

    def row_bytes(self, width: int) -> int:
        """Return the bytes of a row of `width` elements. ValueError unless `width` is a multiple of the block."""
        if width % self.elements:
            raise ValueError(f"rows of {self.name} are blocks of {self.elements} elements, got rows of {width}")
        return width // self.elements * self.nbytes

    def dequantize(self, rows: np.ndarray) -> np.ndarray:
        """Decode rows of bytes (..., row_bytes(width)) to float32 (..., width)."""
        count = rows.shape[-1] // self.nbytes
        blocks = rows.reshape(*rows.shape[:-1], count, self.nbytes)
        return self.decode(blocks).reshape(*rows.shape[:-1], count * self.elements)

    def quantize(self, rows: np.ndarray) -> np.ndarray:
        """Encode float32 (..., width) as rows of bytes. ValueError for partial blocks and for numbers that aren't finite."""
        nbytes = self.row_bytes(rows.shape[-1])
        if not np.isfinite(rows).all():
            raise ValueError(f"{self.name} holds finite numbers only")
        blocks = np.ascontiguousarray(rows, np.float32).reshape(*rows.shape[:-1], nbytes // self.nbytes, self.elements)
        return self.encode(blocks).reshape(*rows.shape[:-1], nbytes)


# Blocks of 32


def _q8_0(blocks: np.ndarray) -> np.ndarray:
    return floats(blocks, 0) * blocks[..., 2:].view(np.int8)


def _q4_0(blocks: np.ndarray) -> np.ndarray:
    return floats(blocks, 0) * (low_and_high(blocks[..., 2:]).astype(np.int8) - 8)


def _q4_1(blocks: np.ndarray) -> np.ndarray:
    return floats(blocks, 0) * low_and_high(blocks[..., 4:]) + floats(blocks, 2)


def _q5_0(blocks: np.ndarray) -> np.ndarray:
    integers = low_and_high(blocks[..., 6:]) | bits_of_words(blocks[..., 2:6]) << 4
    return floats(blocks, 0) * (integers.astype(np.int8) - 16)


def _q5_1(blocks: np.ndarray) -> np.ndarray:
    integers = low_and_high(blocks[..., 8:]) | bits_of_words(blocks[..., 4:8]) << 4
    return floats(blocks, 0) * integers + floats(blocks, 2)


# Blocks of 256: eight groups of 32, each with a scale and a minimum, or sixteen groups of 16


def _decode_eight_groups(blocks: np.ndarray, integers: np.ndarray) -> np.ndarray:
    scales, least = six_bit_pairs(blocks[..., 4:16])
    scale, offset = floats(blocks, 0) * scales, floats(blocks, 2) * least
    made = scale[..., None] * integers - offset[..., None]
    return made.reshape(*blocks.shape[:-1], LARGE)


def _q4_k(blocks: np.ndarray) -> np.ndarray:
    quarters = blocks[..., 16:].reshape(*blocks.shape[:-1], 4, 32)
    return _decode_eight_groups(blocks, low_and_high(quarters).reshape(*blocks.shape[:-1], 8, 32))


def _q5_k(blocks: np.ndarray) -> np.ndarray:
    quarters = blocks[..., 48:].reshape(*blocks.shape[:-1], 4, 32)
    low = low_and_high(quarters).reshape(*blocks.shape[:-1], 8, 32)
    high = blocks[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _decode_eight_groups(blocks, low | high << 4)


def _q6_k(blocks: np.ndarray) -> np.ndarray:
    halves = blocks[..., :128].reshape(*blocks.shape[:-1], 2, 64)
    low = np.concatenate([halves & 15, halves >> 4], axis=-1).reshape(*blocks.shape[:-1], 2, 4, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = blocks[..., 128:192].reshape(*blocks.shape[:-1], 2, 1, 32) >> shifts & 3
    integers = (low | high << 4).astype(np.int8).reshape(*blocks.shape[:-1], 16, 16) - 32
    scales = floats(blocks, 208) * blocks[..., 192:208].view(np.int8)
    return (scales[..., None] * integers).reshape(*blocks.shape[:-1], LARGE)


# Groups of 32 to 256 with a scale and an offset in float32


def _int4(blocks: np.ndarray) -> np.ndarray:
    scale, offset = np.split(np.ascontiguousarray(blocks[..., :8]).view("<f4"), 2, axis=-1)
    parts = low_and_high(blocks[..., 8:].reshape(*blocks.shape[:-1], -1, 16))
    return scale * parts.reshape(*blocks.shape[:-1], -1) + offset


FORMATS = {
    made.name: made
    for made in (
        BlockFormat("q4_0", 2, SMALL, 18, _q4_0, encoding.q4_0),
        BlockFormat("q4_1", 3, SMALL, 20, _q4_1, encoding.q4_1),
        BlockFormat("q5_0", 6, SMALL, 22, _q5_0, encoding.q5_0),
        BlockFormat("q5_1", 7, SMALL, 24, _q5_1, encoding.q5_1),
        BlockFormat("q8_0", 8, SMALL, 34, _q8_0, encoding.q8_0),
        BlockFormat("q4_k", 12, LARGE, 144, _q4_k, encoding.q4_k),
        BlockFormat("q5_k", 13, LARGE, 176, _q5_k, encoding.q5_k),
        BlockFormat("q6_k", 14, LARGE, 210, _q6_k, encoding.q6_k),
        BlockFormat("int4_32", 205, 32, 24, _int4, encoding.int4),
        BlockFormat("int4_64", 206, 64, 40, _int4, encoding.int4),
        BlockFormat("int4_128", 207, 128, 72, _int4, encoding.int4),
        BlockFormat("int4_256", 208, 256, 136, _int4, encoding.int4),
    )
}


def format_named(name: str) -> BlockFormat:
    """Return the layout of this name. ValueError if there is none."""
    found = FORMATS.get(str(name).lower())
    if found is None:
        raise ValueError(f"there is no block format {name!r}; there are {', '.join(FORMATS)}")
    return found
