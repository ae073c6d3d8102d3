"""The older format, written; byte order and mapping where a call does not say."""

import collections
import io
import mmap

import pytest

import rushlight as torch
from rushlight import serialization
from rushlight.serialization import LoadEndianness


def example(library):
    base = library.arange(6.0).view(2, 3)
    return {
        "view": base[:, 1:], "base": base, "list": [library.ones(2, dtype=library.complex64), library.zeros(3, dtype=library.bool)],
        "ordered": collections.OrderedDict(x=library.ones(2, dtype=library.bfloat16)), "number": 3,
    }


def same(one, other):
    torch.testing.assert_close({name: one[name] for name in ("view", "base")}, {name: other[name] for name in ("view", "base")})
    torch.testing.assert_close(one["list"], other["list"])
    torch.testing.assert_close(one["ordered"]["x"], other["ordered"]["x"])
    assert one["number"] == other["number"]


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def test_the_older_format_is_written_and_read():
    file = saved(example(torch), _use_new_zipfile_serialization=False)
    assert file.read(2) == b"\x80\x02"
    file.seek(0)
    found = torch.load(file)
    same(found, example(torch))
    found["base"][0, 1] = 9
    assert found["view"][0, 0] == 9


def test_several_objects_of_the_older_format_follow_each_other():
    file = io.BytesIO()
    for number in range(3):
        torch.save(torch.full((2,), float(number)), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert [torch.load(file)[0].item() for _ in range(3)] == [0.0, 1.0, 2.0]


@pytest.mark.oracle
def test_torch_reads_the_older_format():
    oracle = pytest.importorskip("torch")
    found = oracle.load(saved(example(torch), _use_new_zipfile_serialization=False))
    expected = example(oracle)
    assert found["number"] == 3 and oracle.equal(found["view"], expected["view"])
    assert oracle.equal(found["list"][0], expected["list"][0]) and oracle.equal(found["ordered"]["x"], expected["ordered"]["x"])


def test_files_without_byte_order_are_read_in_the_default_one():
    assert serialization.get_default_load_endianness() is None
    value = torch.arange(3, dtype=torch.int32)
    try:
        serialization.set_default_load_endianness(LoadEndianness.BIG)
        assert torch.load(saved(value)).tolist() == [0, 1, 2]  # which says that it is little-endian
        assert torch.load(saved(value, _disable_byteorder_record=True)).tolist() == [0, 1 << 24, 2 << 24]
        serialization.set_default_load_endianness(LoadEndianness.LITTLE)
        assert torch.load(saved(value, _disable_byteorder_record=True)).tolist() == [0, 1, 2]
    finally:
        serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError):
        serialization.set_default_load_endianness("big")


def test_shared_mappings_write_through(tmp_path):
    path = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(3)}, path)
    torch.load(path, mmap=True)["w"][0] = 5
    assert torch.load(path)["w"].tolist() == [1, 1, 1]
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)["w"][0] = 7
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert torch.load(path, mmap=True)["w"].tolist() == [7, 1, 1]
    with pytest.raises(ValueError, match="MAP_PRIVATE or mmap.MAP_SHARED"):
        serialization.set_default_mmap_options(2**20)
