"""What `save` writes, `load` gives back: values, geometry, sharing, types and order."""

from __future__ import annotations

import io
import os
import stat
from collections import Counter, OrderedDict

import numpy as np
import pytest

from rushlight.core.device import device
from rushlight.core.dtype import ALL, bfloat16, float32, float64
from rushlight.core.layout import strided
from rushlight.core.size import Size
from rushlight.core.tensor import from_numpy, tensor_from_storage
from rushlight.nn.parameter import Parameter
from rushlight.serialization import PicklingError, load, save
from tests.serialization.archives import example, legacy_bytes, load_bytes, save_bytes, zip_bytes


def round_trip(value):
    return load_bytes(save_bytes(value))


@pytest.mark.parametrize("element_type", ALL, ids=lambda d: d.name)
def test_every_dtype(element_type):
    values = np.arange(6).reshape(2, 3).astype(element_type.numpy)
    loaded = round_trip(from_numpy(values))
    assert loaded.dtype is element_type
    assert loaded.shape == (2, 3)
    assert (loaded.numpy() == values).all()


PLAIN = [
    None, True, False, 0, 255, 256, 65535, 65536, -1, -(1 << 31), 1 << 31, 1 << 63, -(1 << 63), 1 << 300,
    0.5, float("inf"), 1 + 2j, "", "text", "\u00e9\u4e2d\U0001f600", b"", b"\x00\xff", bytearray(b"ab"),
    (), (1,), (1, (2, 3)), [], [1, [2]], {}, {"a": 1, 2: "b", None: 3.5, (1, "x"): 4}, set(), {1, 2},
    Size((2, 3)), device("cpu"), float32, bfloat16, strided, Counter("aab"), OrderedDict(b=1, a=2),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values(value):
    loaded = round_trip(value)
    assert loaded == value
    assert type(loaded) is type(value)


def test_nan_survives():
    assert np.isnan(round_trip(float("nan")))


def test_views_share_their_storage():
    loaded = round_trip(example())
    weight, transposed = loaded["weight"], loaded["transposed"]
    assert weight.untyped_storage() == transposed.untyped_storage()
    assert (weight.stride(), weight.storage_offset()) == ((5, 1), 2)
    assert transposed.stride() == (1, 3)
    assert transposed.tolist() == example()["transposed"].tolist()
    weight.numpy()[0, 0] = -1.0
    assert transposed.tolist()[2][0] == -1.0


def test_identity_and_cycles_survive():
    tensor = from_numpy(np.zeros(2, np.float32))
    cycle = [tensor, tensor]
    cycle.append(cycle)
    loaded = round_trip(cycle)
    assert loaded[0] is loaded[1]
    assert loaded[2] is loaded


def test_gradient_flags_and_parameters():
    tensor = from_numpy(np.ones(2, np.float32)).requires_grad_(True)
    frozen = Parameter(from_numpy(np.ones(3, np.float32)), False)
    loaded = round_trip([tensor, Parameter(from_numpy(np.ones((2, 2), np.float32))), frozen])
    assert [type(value).__name__ for value in loaded] == ["Tensor", "Parameter", "Parameter"]
    assert [value.requires_grad for value in loaded] == [True, True, False]
    assert all(value.is_leaf for value in loaded)


def test_state_dict_keeps_order_and_metadata():
    state = OrderedDict((f"layer.{n}", from_numpy(np.full(2, n, np.float32))) for n in range(300))
    state._metadata = OrderedDict([("", {"version": 1}), ("layer", {"version": 2})])
    loaded = round_trip(state)
    assert type(loaded) is OrderedDict
    assert list(loaded) == list(state)
    assert loaded._metadata == state._metadata
    assert loaded["layer.299"].tolist() == [299.0, 299.0]


def test_attributes_of_tensors():
    tensor, parameter = from_numpy(np.ones(2, np.float32)), Parameter(from_numpy(np.ones(2, np.float32)))
    tensor.note, parameter.tags = "kept", ["a"]
    loaded = round_trip([tensor, parameter])
    assert loaded[0].note == "kept"
    assert loaded[1].tags == ["a"]


def test_empty_and_scalar_tensors():
    loaded = round_trip([from_numpy(np.zeros((0, 3), np.float32)), from_numpy(np.array(2.5))])
    assert loaded[0].shape == (0, 3)
    assert loaded[1].tolist() == 2.5


def test_storages_themselves():
    tensor = from_numpy(np.arange(3, dtype=np.int64))
    typed, untyped = round_trip(tensor.storage()), round_trip(tensor.untyped_storage())
    assert typed.tolist() == [0, 1, 2]
    assert untyped.tolist() == tensor.untyped_storage().tolist()


def test_one_storage_as_two_dtypes_is_refused():
    tensor = from_numpy(np.zeros(4, np.float64))
    other = tensor_from_storage(tensor.untyped_storage(), float32, (8,), (1,), 0)
    with pytest.raises(PicklingError, match="different types: torch.float64 and torch.float32"):
        save_bytes([tensor, other])
    assert tensor.dtype is float64


def test_deep_nesting_and_recursive_tuples_are_refused():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(PicklingError, match="too deeply"):
        save_bytes(deep)
    inner: list = []
    inner.append((inner,))
    with pytest.raises(PicklingError, match="contains itself"):
        save_bytes(inner[0])


def test_paths_and_files(tmp_path):
    path = tmp_path / "model.v1.pt"
    save(example(), path)
    for source in (path, str(path)):
        assert load(source)["names"] == example()["names"]
    with open(path, "rb") as file:
        assert load(file)["names"] == example()["names"]
    assert load(path, mmap=True)["transposed"].tolist() == example()["transposed"].tolist()
    assert os.listdir(tmp_path) == ["model.v1.pt"]


def test_archive_inside_a_larger_file():
    buffer = io.BytesIO(b"before" + save_bytes([1, 2]))
    buffer.seek(6)
    assert load(buffer) == [1, 2]


def test_save_writes_the_same_bytes_every_time():
    assert save_bytes(example()) == save_bytes(example())


def test_save_to_a_stream_that_cannot_seek():
    class Pipe:
        def __init__(self):
            self.written = b""

        def write(self, data):
            self.written += bytes(data)
            return len(data)

    pipe = Pipe()
    save(example(), pipe)
    assert pipe.written == save_bytes(example())


def test_replacing_a_file_keeps_permissions_and_follows_links(tmp_path):
    path, link = tmp_path / "model.pt", tmp_path / "link.pt"
    save(1, path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    save(2, link)
    assert load(path) == 2
    assert link.is_symlink()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640


def test_a_failing_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    save(1, path)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(2, path)
    assert load(path) == 1
    assert os.listdir(tmp_path) == ["model.pt"]


def test_a_mapped_file_is_not_written(tmp_path):
    path = tmp_path / "model.pt"
    save(example(), path)
    before = path.read_bytes()
    load(path, mmap=True)["weight"].numpy()[:] = -1
    assert path.read_bytes() == before


def test_mapping_needs_a_path_and_the_zip_format(tmp_path):
    with pytest.raises(ValueError, match="needs a path"):
        load_bytes(save_bytes(1), mmap=True)
    path = tmp_path / "legacy.pt"
    path.write_bytes(legacy_bytes(1))
    with pytest.raises(RuntimeError, match="not a zip checkpoint"):
        load(path, mmap=True)


@pytest.mark.parametrize("write", [save_bytes, legacy_bytes])
class TestMapLocation:
    def locations(self, write):
        return write([from_numpy(np.ones(2, np.float32))])

    @pytest.mark.parametrize("target", [None, "cpu", device("cpu"), {"cpu": "cpu"}, {}, lambda storage, where: None])
    def test_cpu(self, write, target):
        assert load_bytes(self.locations(write), map_location=target)[0].tolist() == [1.0, 1.0]

    def test_meta(self, write):
        loaded = load_bytes(self.locations(write), map_location="meta")[0]
        assert (loaded.device.type, loaded.shape, loaded.dtype) == ("meta", (2,), float32)

    def test_other_devices_need_a_map(self, write):
        data = self.locations(write).replace(b"\x03\x00\x00\x00cpu", b"\x04\x00\x00\x00cuda")
        data = data if write is legacy_bytes else _rezip(data)
        with pytest.raises(RuntimeError, match="on a CUDA device.*map_location"):
            load_bytes(data)
        for target in ("cpu", {"cuda": "cpu"}, lambda storage, where: storage):
            assert load_bytes(data, map_location=target)[0].tolist() == [1.0, 1.0]

    def test_wrong_types(self, write):
        with pytest.raises(TypeError, match="map_location must be"):
            load_bytes(self.locations(write), map_location=3)
        with pytest.raises(TypeError, match="map_location must return"):
            load_bytes(self.locations(write), map_location=lambda storage, where: 5)


def _rezip(data: bytes) -> bytes:
    # The pickle became a byte longer than its record says; take it apart where the next header begins.
    start = data.index(b"\x80\x02")
    program = data[start : data.index(b"PK\x07\x08", start)]
    return zip_bytes([("archive/data.pkl", program), ("archive/data/0", np.ones(2, np.float32).tobytes())])


def test_legacy_round_trip_and_several_in_one_file():
    buffer = io.BytesIO(legacy_bytes(example()) + legacy_bytes([1, 2]))
    first = load(buffer)
    assert first["weight"].tolist() == example()["weight"].tolist()
    assert first["weight"].untyped_storage() == first["transposed"].untyped_storage()
    assert load(buffer) == [1, 2]


def test_wrong_arguments():
    with pytest.raises(AttributeError, match="file-like object with a 'read' attribute"):
        load(b"bytes")
    with pytest.raises(TypeError, match="binary mode"):
        load(io.StringIO("text"))
    with pytest.raises(AttributeError, match="with a 'write' attribute"):
        save(1, 5)
    with pytest.raises(FileNotFoundError):
        load("/nonexistent/file.pt")
