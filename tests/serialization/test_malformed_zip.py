"""Zip archives that are truncated, compressed, overlapping, contradictory, or no checkpoint: RuntimeErrors say so."""

from __future__ import annotations

import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from rushlight.core.tensor import from_numpy
from rushlight.serialization import load
from tests.serialization.archives import checkpoint, example, load_bytes, save_bytes, tensor_program, zip_bytes

FLOATS = np.arange(4, dtype=np.float32).tobytes()
VALID = checkpoint(tensor_program(4, 0, (4,), (1,)), {"0": FLOATS})
END = VALID.rindex(b"PK\x05\x06")
DIRECTORY = struct.unpack_from("<I", VALID, END + 16)[0]


def refuses(data: bytes, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        load_bytes(data)


def patched(position: int, layout: str, value: int, data: bytes = VALID) -> bytes:
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    return bytes(changed)


def central(name: str) -> int:
    """The position of a record's entry in the directory."""
    return VALID.rindex(name.encode()) - 46


def test_the_archive_that_the_others_damage_is_right():
    assert load_bytes(VALID).tolist() == [0, 1, 2, 3]


def test_the_error_names_the_file(tmp_path):
    path = tmp_path / "cut.pt"
    path.write_bytes(VALID[:100])
    with pytest.raises(RuntimeError, match="cut.pt.*truncated"):
        load(path)


@pytest.mark.parametrize("length", [*range(0, len(VALID), 7), *range(len(VALID) - 40, len(VALID))])
def test_every_truncation(length):
    refuses(VALID[:length], "empty|truncated|not a checkpoint|directory")


@pytest.mark.parametrize("data", [b"\0", b"PK", b"not a checkpoint at all", b"{}", b"\x89PNG\r\n", bytes(1000)])
def test_other_files(data):
    refuses(data, "is not a checkpoint")


def test_bytes_after_the_end():
    refuses(VALID + b"x", "no zip directory at its end")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_records_are_not_expanded(method):
    bomb = zip_bytes([("archive/data.pkl", b"N."), ("archive/data/0", bytes(1 << 26))], method)
    assert len(bomb) < 1 << 17
    tracemalloc.start()
    refuses(bomb, "compressed")
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


HUGE = 0xFFFF_FFFE
DATA_ENTRY = central("archive/data/0")


@pytest.mark.parametrize(
    ("position", "layout", "value", "message"),
    [
        (END + 4, "<H", 1, "several files"),
        (END + 6, "<H", 1, "several files"),
        (END + 8, "<H", 9, "several files"),
        (END + 12, "<I", HUGE, "declared at bytes"),
        (END + 16, "<I", HUGE, "declared at bytes"),
        (END + 16, "<I", 0, "declared at bytes"),
        (DATA_ENTRY, "<I", 0, "directory is malformed"),
        (DATA_ENTRY + 8, "<H", 1, "encrypted"),
        (DATA_ENTRY + 8, "<H", 8, "does not agree"),
        (DATA_ENTRY + 10, "<H", 12, "does not agree"),
        (DATA_ENTRY + 16, "<I", 7, "checksum"),
        (DATA_ENTRY + 20, "<I", HUGE, "declares 4294967294 bytes for 16"),
        (DATA_ENTRY + 24, "<I", HUGE, "declares 16 bytes for 4294967294"),
        (DATA_ENTRY + 28, "<H", 0xFFFF, "truncated"),
        (DATA_ENTRY + 30, "<H", 0xFFFF, "truncated"),
        (DATA_ENTRY + 32, "<H", 0xFFFF, "truncated"),
        (DATA_ENTRY + 34, "<H", 3, "several files"),
        (DATA_ENTRY + 42, "<I", HUGE, "outside of the records"),
        (DATA_ENTRY + 42, "<I", 0xFFFF_FFFF, "64-bit sizes"),
        (DATA_ENTRY + 42, "<I", 0, "does not agree"),
        (DATA_ENTRY + 42, "<I", 1, "record 'archive/data/0'"),
        (0, "<I", 0x04034B50 + 1, "is not a checkpoint"),
        (6, "<H", 1, "does not agree"),
        (8, "<H", 8, "does not agree"),
        (18, "<I", 5, "does not agree"),
        (26, "<H", 3, "does not agree"),
        (28, "<H", 0xFFFF, "more than lie behind its header"),
    ],
)
def test_single_wrong_fields(position, layout, value, message):
    refuses(patched(position, layout, value), message)


def test_sizes_beyond_the_file():
    both = patched(DATA_ENTRY + 24, "<I", HUGE, patched(DATA_ENTRY + 20, "<I", HUGE))
    refuses(both, "declares 4294967294 bytes, more than lie behind its header")


def test_overlapping_records():
    # The second record's header lies in the first record's bytes.
    inner = zip_bytes([("archive/b", b"1234")])
    header = inner[: inner.index(b"PK\x01\x02")]
    outer = bytearray(zip_bytes([("archive/a", header), ("archive/b", b"1234")]))
    entry = outer.rindex(b"archive/b") - 46
    struct.pack_into("<I", outer, entry + 42, outer.index(header))
    refuses(bytes(outer), "'archive/a' and 'archive/b' overlap")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_names():
    refuses(zip_bytes([("archive/data.pkl", b"N."), ("archive/data.pkl", b"N.")]), "two records called")


@pytest.mark.parametrize("folder", ["../", "/", "a/../", "a//", "./", "a\\"])
def test_unsafe_names(folder):
    refuses(zip_bytes([(folder + "data.pkl", b"N.")]), "unsafe name")


def test_names_that_are_not_utf8():
    data = zip_bytes([("archive/data.pkl", b"N.")])
    refuses(data.replace(b"archive/", b"\xff\xfe\xff\xfe\xff\xfe\xff/"), "not UTF-8")


def test_archives_that_are_no_checkpoints():
    refuses(zip_bytes([("word/document.xml", b"<x/>")]), "0 records '<name>/data.pkl'")
    refuses(zip_bytes([("a/data.pkl", b"N."), ("b/data.pkl", b"N.")]), "2 records '<name>/data.pkl'")
    refuses(zip_bytes([("a/data.pkl", b"N."), ("a/constants.pkl", b"N.")]), "TorchScript.*torch.jit.load")
    refuses(zip_bytes([]) + b"", "is not a checkpoint")


def test_missing_and_missized_storages():
    program = tensor_program(4, 0, (4,), (1,))
    refuses(checkpoint(program), "no record 'archive/data/0'")
    refuses(checkpoint(program, {"0": FLOATS[:8]}), "declared with 16 bytes, and its record has 8")
    refuses(checkpoint(program, {"0": FLOATS * 2}), "declared with 16 bytes, and its record has 32")


def test_storages_of_absurd_size():
    for count in (1 << 40, 1 << 62, -1):
        with pytest.raises(Exception, match="declared with|of .* elements"):
            load_bytes(checkpoint(tensor_program(count, 0, (4,), (1,)), {"0": FLOATS}))


def test_version_and_byte_order():
    program = tensor_program(4, 0, (4,), (1,))
    refuses(checkpoint(program, {"0": FLOATS}, byteorder=b"middle"), "byte order b'middle'")
    refuses(checkpoint(program, {"0": FLOATS}, byteorder=b"l" * 100), "at most 64")
    for version in (b"11", b"0", b"x", b"", b"9" * 60):
        refuses(zip_bytes([("a/data.pkl", b"N."), ("a/version", version)]), "format version")


def test_big_endian_storages_are_turned_round():
    for kind, values in [("FloatStorage", np.arange(4, dtype=">f4")), ("LongStorage", np.arange(4, dtype=">i8"))]:
        data = checkpoint(tensor_program(4, 0, (4,), (1,), kind=kind), {"0": values.tobytes()}, byteorder=b"big")
        assert load_bytes(data).tolist() == [0, 1, 2, 3]
    values = np.array([1 + 2j, 3 - 4j], ">c8")
    program = tensor_program(2, 0, (2,), (1,), kind="ComplexFloatStorage")
    assert load_bytes(checkpoint(program, {"0": values.tobytes()}, byteorder=b"big")).tolist() == [1 + 2j, 3 - 4j]


def test_64_bit_archives(monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 8)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    data = save_bytes(example())
    assert b"PK\x06\x06" in data
    assert load_bytes(data)["names"] == example()["names"]
    end = data.index(b"PK\x06\x06")
    refuses(patched(end + 40, "<Q", 1 << 62, data), "declared at bytes|contradict")
    refuses(patched(end + 4, "<Q", 1 << 62, data), "zip64 end record is malformed")
    refuses(patched(data.index(b"PK\x06\x07") + 8, "<Q", 1 << 62, data), "outside the file")


def test_aligned_records():
    data = save_bytes([from_numpy(np.full(n + 1, n, np.float32)) for n in range(20)])
    for n in range(1, 20):
        assert data.index(np.full(n + 1, n, np.float32).tobytes()) % 64 == 0
