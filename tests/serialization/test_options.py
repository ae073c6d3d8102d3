"""The older format, written; byte order, mapping, checksums and the like where a call does not say."""

import collections
import io
import mmap
import os
import pickle
import zipfile
from typing import Any

import pytest

import rushlight as torch
from rushlight import serialization
from rushlight._subclasses.fake_tensor import FakeTensorMode
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
        assert torch.load(saved(value)).tolist() == [0, 1, 2]  # the file's own byte order record wins
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


# What torch 0.4 wrote in Python 2: a list of a str with letters outside of ASCII, a tensor, and a number.
PYTHON_2 = (
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x01.\x80\x02]q\x01(U\x04\xc5\xbc\xc4\x85q\x02"
    b"ctorch._utils\n_rebuild_tensor_v2\nq\x03((U\x07storageq\x04ctorch\nFloatStorage\nq\x05U\x0211q\x06U\x03cpuq\x07K\x03"
    b"(U\x0212K\x01K\x02ttQK\x00K\x02\x85K\x01\x85\x89NtRq\x08K\x02e.\x80\x02]q\x01U\x0211q\x02a."
    b"\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@"
)


@pytest.mark.parametrize("weights_only", [True, False])
def test_text_of_python_2_and_parts_of_storages(weights_only):
    for encoding, text in (("utf-8", "\u017c\u0105"), ("bytes", b"\xc5\xbc\xc4\x85")):
        found = torch.load(io.BytesIO(PYTHON_2), weights_only=weights_only, encoding=encoding)
        assert found[0] == text and found[1].tolist() == [2.0, 3.0] and found[2] == 2
    with pytest.raises(TypeError, match="takes no fix_imports"):
        torch.load(io.BytesIO(PYTHON_2), weights_only=True, fix_imports=False)


def test_another_module_reads_pickles():
    class Reading:
        class Unpickler(pickle.Unpickler):
            def load(self):
                return ["read", super().load()]

    assert torch.load(saved([1, 2]), pickle_module=Reading, weights_only=False) == ["read", [1, 2]]


def test_memory_under_two_dtypes():
    z = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([z, z.imag], io.BytesIO())
    empty = torch.tensor([])
    other = torch.TypedStorage(wrap_storage=empty.untyped_storage(), dtype=torch.int32)
    found = torch.load(saved([empty, other]))
    assert found[0].dtype is torch.float32 and found[1].dtype is torch.int32


def _bytes_of(value: Any) -> io.BytesIO:
    stream = io.BytesIO()
    torch.save(value, stream)
    stream.seek(0)
    return stream


def test_files_without_checksums_are_read():
    serialization.set_crc32_options(False)
    try:
        stream = _bytes_of({"weight": torch.ones(3)})
    finally:
        serialization.set_crc32_options(True)
    assert serialization.get_crc32_options()
    assert {record.CRC for record in zipfile.ZipFile(stream).infolist()} == {0}
    stream.seek(0)
    assert torch.load(stream)["weight"].tolist() == [1, 1, 1]


def test_skip_data_leaves_storages_zero():
    weight = torch.ones(2, 3)
    with serialization.skip_data():
        stream = _bytes_of([weight, weight[1]])
    whole, row = torch.load(stream)
    assert whole.tolist() == [[0, 0, 0], [0, 0, 0]] and row.untyped_storage()._impl is whole.untyped_storage()._impl
    stream = _bytes_of(weight)
    with serialization.skip_data():
        assert torch.load(stream).tolist() == [[0, 0, 0], [0, 0, 0]]
    with serialization.skip_data(), pytest.warns(UserWarning, match="no-op"):
        _bytes_of(torch.ones(2, device="meta"))


def test_skip_data_writes_fake_tensors():
    with FakeTensorMode():
        weight = torch.empty(2, 3)
    with pytest.raises(serialization.PicklingError):
        _bytes_of(weight)
    with serialization.skip_data(materialize_fake_tensors=True):
        stream = _bytes_of(weight)
    assert torch.load(stream).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_the_environment_forces_weights_only(monkeypatch):
    stream = _bytes_of(torch.nn.Linear(1, 1))
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(serialization.UnpicklingError, match="Weights only load failed"):
        torch.load(stream, weights_only=False)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(stream)
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    stream.seek(0)
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert isinstance(torch.load(stream), torch.nn.Linear)
    stream.seek(0)
    with pytest.raises(serialization.UnpicklingError, match="Weights only load failed"):
        torch.load(stream, weights_only=True)


def test_modules_of_the_system_are_blocked():
    with serialization.safe_globals([os.execv]), pytest.raises(serialization.UnpicklingError, match="is blocked"):
        torch.load(_bytes_of(os.execv))


def test_functions_of_python_can_be_vouched_for():
    with serialization.safe_globals([len]):
        assert torch.load(_bytes_of(_Call())) == 3


class _Call:
    def __reduce__(self) -> tuple:
        return len, ("abc",)


def test_locations():
    storage = torch.ones(2).untyped_storage()
    assert serialization.location_tag(storage) == "cpu"
    assert serialization.default_restore_location(storage, "cpu") is storage
    with pytest.raises(RuntimeError, match="CUDA"):
        serialization.default_restore_location(storage, "cuda:0")


@pytest.mark.parametrize("convert", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_in_the_older_format(convert):
    stream = io.BytesIO()
    torch.save(getattr(torch.eye(3) * 2, convert)(), stream, _use_new_zipfile_serialization=False)
    stream.seek(0)
    assert torch.load(stream).to_dense().tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]


def test_sparse_tensors_that_do_not_fit_in_the_older_format():
    class Spoof:
        def __reduce__(self) -> tuple:
            indices = torch.tensor([[3], [0]])
            return torch._utils._rebuild_sparse_tensor, (torch.sparse_coo, (indices, torch.ones(1), (3, 3)))

    for zipped in (True, False):
        stream = io.BytesIO()
        torch.save(Spoof(), stream, _use_new_zipfile_serialization=zipped)
        for weights_only in (True, False):
            stream.seek(0)
            with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
                torch.load(stream, weights_only=weights_only)
