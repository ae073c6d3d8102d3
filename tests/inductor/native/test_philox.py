"""rushlight/philox.h: published test vectors, and the same words in any order and for any vector length."""

from __future__ import annotations

import numpy as np
import pytest

from rushlight.ops.cpu.philox import philox, stream

# Known answers that the authors publish with Random123 (kat_vectors, philox4x32 with 10 rounds): counter, key, block.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]  # fmt: skip
SEED = 0x1234567890ABCDEF


def test_published_vectors(kernels):
    counters, keys, blocks = (np.array(column, np.uint32) for column in zip(*KNOWN, strict=True))
    scalars, vectors = np.empty_like(blocks), np.empty_like(blocks)
    kernels.call("philox_blocks", counters, keys, scalars, vectors, len(KNOWN))
    np.testing.assert_array_equal(scalars, blocks)
    np.testing.assert_array_equal(vectors, blocks)


@pytest.mark.parametrize("counter, key, block", KNOWN)
def test_published_vectors_in_numpy(counter, key, block):
    words = philox(tuple(np.array([word], np.uint64) for word in counter), key)
    assert [int(word[0]) for word in words] == list(block)


@pytest.mark.parametrize("first, step", [(0, 1), (5, 1), (63, 1), (64, 1), (0, 3), (7, 64), (900, -1)])
def test_streams_give_the_same_words_as_numpy(kernels, first, step):
    count, got = 333, np.empty(333, np.int64)
    kernels.call("philox_stream_bits", SEED, 9, first, step, got, count)
    places = first + step * np.arange(count)
    np.testing.assert_array_equal(got, stream(SEED, 9, int(places.max()) + 1)[places].astype(np.int64))


def test_numpy_makes_long_streams_in_parts():
    whole, count = stream(SEED, 5, (1 << 18) + 200), 1 << 18
    np.testing.assert_array_equal(whole[:count], stream(SEED, 5, count))
    blocks = np.arange(count // 4, count // 4 + 16, dtype=np.uint64)
    zero = np.zeros_like(blocks)
    words = philox((blocks, zero, zero + np.uint64(5), zero), (SEED & 0xFFFFFFFF, SEED >> 32))
    np.testing.assert_array_equal(whole[count : count + 64], np.concatenate(words))


def test_far_elements_do_not_repeat_near_ones(kernels):
    near, far = np.empty(64, np.int64), np.empty(64, np.int64)
    kernels.call("philox_stream_bits", SEED, 0, 0, 1, near, 64)
    kernels.call("philox_stream_bits", SEED, 0, 1 << 34, 1, far, 64)  # where the low word of the counter is 0 again
    assert not np.any(near == far)


def test_uniform_numbers_are_the_upper_bits(kernels):
    got = np.empty(1000, np.float32)
    kernels.call("philox_stream_uniform", SEED, 3, got, 1000)
    np.testing.assert_array_equal(got.astype(np.float64), (stream(SEED, 3, 1000) >> np.uint32(8)) / 2.0**24)
