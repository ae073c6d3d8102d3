"""Safetensors: round trips, agreement with the `safetensors` package's NumPy reader and writer, and damaged files."""

from __future__ import annotations

import io
import json
import os

import numpy as np
import pytest
import safetensors.numpy

from rushlight.core.dtype import ALL, complex128
from rushlight.core.tensor import from_numpy
from rushlight.serialization import load_safetensors, save_safetensors
from tests.serialization.archives import example


def arrays() -> dict[str, np.ndarray]:
    kinds = [element_type for element_type in ALL if element_type is not complex128]
    made = {d.name: (np.arange(6).reshape(2, 3) % 2).astype(d.numpy) for d in kinds}
    return {**made, "empty": np.zeros((0, 3), np.float32), "scalar": np.array(1.5)}


def test_round_trip_of_every_dtype(tmp_path):
    path = tmp_path / "model.safetensors"
    save_safetensors({name: from_numpy(array) for name, array in arrays().items()}, path, {"format": "pt"})
    for loaded in (load_safetensors(path), load_safetensors(io.BytesIO(path.read_bytes()))):
        assert set(loaded) == set(arrays())
        for name, array in arrays().items():
            assert loaded[name].dtype.numpy == array.dtype
            assert loaded[name].shape == array.shape
            assert (loaded[name].numpy() == array).all()
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_the_package_reads_what_is_written(tmp_path):
    path = tmp_path / "model.safetensors"
    state = {"weight": example()["transposed"], "bias": from_numpy(np.ones(3, np.float16))}
    save_safetensors(state, path, {"note": "kept"})
    loaded = safetensors.numpy.load_file(path)
    assert loaded["weight"].tolist() == state["weight"].tolist()
    assert loaded["bias"].tolist() == [1, 1, 1]
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata() == {"note": "kept"}


def test_what_the_package_writes_is_read():
    made = {"a": np.arange(6, dtype=np.int32).reshape(3, 2), "b": np.ones(4)}
    loaded = load_safetensors(io.BytesIO(safetensors.numpy.save(made, {"x": "y"})))
    assert {name: value.tolist() for name, value in loaded.items()} == {k: v.tolist() for k, v in made.items()}


VALID = safetensors.numpy.save({"a": np.arange(4, dtype=np.float32)})


def with_header(fields: object, data: bytes = bytes(16)) -> bytes:
    text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return len(text).to_bytes(8, "little") + text + data


def tensor(dtype="F32", shape=(4,), offsets=(0, 16)) -> dict:
    return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


DAMAGED = {
    "empty": b"",
    "short": b"\x01\x02",
    "no header": bytes(8),
    "huge header": (1 << 62).to_bytes(8, "little") + b"{}",
    "large header": (200 << 20).to_bytes(8, "little") + b"{}",
    "cut header": VALID[:20],
    "cut data": VALID[:-1],
    "extra data": VALID + b"x",
    "not JSON": with_header(b"{" * 100),
    "deep JSON": with_header(b'{"a":' * 100_000),
    "a list": with_header([1]),
    "wrong fields": with_header({"a": {"dtype": "F32"}}),
    "offsets beyond": with_header(tensor(offsets=(0, 1 << 40))),
    "offsets reversed": with_header(tensor(offsets=(16, 0))),
    "offsets negative": with_header(tensor(offsets=(-16, 0))),
    "gap": with_header(tensor(shape=(2,), offsets=(8, 16))),
    "shape too large": with_header(tensor(shape=(5,))),
    "shape overflows": with_header(tensor(shape=(1 << 62, 1 << 62))),
    "unknown dtype": with_header(tensor(dtype="F99")),
    "overlap": with_header({**tensor(), "b": tensor(offsets=(8, 24))["a"]}),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_files(data, tmp_path):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match="bad.safetensors.*not a valid safetensors file"):
        load_safetensors(path)


def test_every_truncation():
    for length in range(len(VALID)):
        with pytest.raises(RuntimeError):
            load_safetensors(io.BytesIO(VALID[:length]))


def test_bfloat16_beside_others_in_a_stream(tmp_path):
    state = {"narrow": from_numpy(np.ones(3, np.float32)).bfloat16(), "wide": from_numpy(np.ones(3, np.float32))}
    save_safetensors(state, tmp_path / "model.safetensors")
    loaded = load_safetensors(io.BytesIO((tmp_path / "model.safetensors").read_bytes()))
    assert loaded["narrow"].dtype is state["narrow"].dtype and loaded["wide"].tolist() == [1, 1, 1]


def test_dtypes_that_tensors_lack():
    with pytest.raises(RuntimeError, match="unknown dtype"):
        load_safetensors(io.BytesIO(with_header(tensor(dtype="F4", shape=(32,)))))


def test_wrong_arguments(tmp_path):
    path = tmp_path / "model.safetensors"
    base = from_numpy(np.zeros(4, np.float32))
    with pytest.raises(TypeError, match="names and tensors"):
        save_safetensors({"a": np.zeros(2)}, path)
    with pytest.raises(TypeError, match="names and tensors"):
        save_safetensors({1: base}, path)
    with pytest.raises(TypeError, match="strings to strings"):
        save_safetensors({"a": base}, path, {"n": 1})
    with pytest.raises(ValueError, match="'a' and 'b' share memory"):
        save_safetensors({"a": base, "b": base}, path)
    with pytest.raises(ValueError, match="complex128"):
        save_safetensors({"a": from_numpy(np.zeros(2, np.complex128))}, path)
    with pytest.raises(FileNotFoundError):
        load_safetensors(path)
    assert os.listdir(tmp_path) == []
