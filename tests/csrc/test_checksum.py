"""The checksum of zip archives, beside zlib's."""

from __future__ import annotations

import random
import zlib

import pytest

from rushlight import _C


@pytest.mark.parametrize("size", [0, 1, 15, 16, 63, 64, 65, 79, 80, 127, 128, 143, 1000, 65_535, 65_536, 200_003])
@pytest.mark.parametrize("start", [0, 1, 7])
def test_it_is_that_of_zlib(size, start):
    data = memoryview(random.Random(size).randbytes(size + start))[start:]
    assert _C.crc32(data) == zlib.crc32(data)
    assert _C.crc32(bytes(size)) == zlib.crc32(bytes(size)) and _C.crc32(b"\xff" * size) == zlib.crc32(b"\xff" * size)


def test_it_takes_bytes_in_a_row_only():
    with pytest.raises(TypeError):
        _C.crc32("text")
    with pytest.raises(BufferError):
        _C.crc32(memoryview(b"abcdef")[::2])
