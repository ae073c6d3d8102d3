"""CPU kernels of counter-based random numbers, bit for bit those of `inductor/include/rushlight/philox.h`."""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.dtype import float32, float64, int64
from rushlight.core.generator import default_generator
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import empty, make
from rushlight.ops.meta.creation import check_sizes
from rushlight.ops.meta.philox import check_stream, check_uniform
from rushlight.ops.registry import cpu

_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_CHUNK = 1 << 18  # words made at a time; a multiple of 64
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(counter: tuple[np.ndarray, ...], key: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Return the four 32-bit output words of each counter under `key`, in uint64."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        first, second = c0 * _FACTORS[0], c2 * _FACTORS[1]
        c0, c1 = (second >> _HALF) ^ c1 ^ np.uint64(k0), second & _LOW
        c2, c3 = (first >> _HALF) ^ c3 ^ np.uint64(k1), first & _LOW
        k0, k1 = (k0 + _STEPS[0]) & 0xFFFFFFFF, (k1 + _STEPS[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def stream(seed: int, offset: int, count: int) -> np.ndarray:
    """Return the first `count` words of a stream as uint32. 16 counters give 64 words: first all first words, then all second
    words, ..."""
    made = np.empty(count, np.uint32)
    for begin in range(0, count, _CHUNK):
        part = made[begin : begin + _CHUNK]
        groups = -(-part.size // 64)
        blocks = np.arange(begin // 4, begin // 4 + 16 * groups, dtype=np.uint64)
        zero = np.zeros_like(blocks)
        counter = (blocks & _LOW, blocks >> _HALF, zero + np.uint64(offset), zero)
        words = philox(counter, (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF))
        part[...] = np.stack([word.reshape(groups, 16) for word in words], axis=1).reshape(-1)[: part.size]
    return made


def _words(seed: Tensor, offset: int, sizes: tuple[int, ...]) -> np.ndarray:
    return stream(int(seed._impl.array.reshape(-1)[0]), offset, math.prod(sizes)).reshape(sizes)


@cpu("_philox_seed")
def draw_seed(*, device=None):
    made = empty((), int64)
    with default_generator.lock:
        default_generator.twister.words(made)
    return made


@cpu("_philox_uniform")
def uniform(seed, offset, size, *, dtype=None):
    check_stream("_philox_uniform", seed, offset)
    sizes, kind = check_sizes(size), check_uniform(dtype)
    words = _words(seed, offset, sizes)
    if kind is float32:
        return make((words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24), float32)
    high, low = words >> np.uint32(5), _words(seed, offset + 1, sizes) >> np.uint32(6)
    return make((high.astype(np.float64) * 2.0**26 + low.astype(np.float64)) * 2.0**-53, float64)


@cpu("_philox_bits")
def bits(seed, offset, size):
    check_stream("_philox_bits", seed, offset)
    return make(_words(seed, offset, check_sizes(size)).astype(np.int64), int64)
