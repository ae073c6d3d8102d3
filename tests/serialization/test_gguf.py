"""GGUF files: what is written is read, mapped and not copied; damaged files are errors."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

import rushlight as torch
from rushlight.quantized.blocks import BlockTensor
from rushlight.serialization import CheckpointError

METADATA = {
    "general.architecture": "test", "flag": True, "count": -3, "share": 0.5, "names": ["a", "é", ""], "scores": [1.0, -2.5],
    "kinds": [1, 2, 3], "flags": [True, False],
}  # fmt: skip


def tensors() -> dict[str, torch.Tensor]:
    numbers = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 512)).astype(np.float32))
    plain = {
        kind: numbers[:2, :5].to(getattr(torch, kind))
        for kind in ("float32", "float16", "bfloat16", "float64", "int8", "int64")
    }
    blocks = {name: BlockTensor.quantize(numbers, name) for name in ("q4_0", "q5_1", "q8_0", "q4_k", "q6_k")}
    return {**plain, **blocks, "empty": torch.zeros(0, 3), "one": torch.tensor(7.0)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("gguf") / "file.gguf"
    torch.save_gguf(tensors(), made, METADATA)
    return made


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if isinstance(one, BlockTensor):
        return isinstance(other, BlockTensor) and one.format == other.format and torch.equal(one.blocks, other.blocks)
    return one.dtype is other.dtype and one.shape == other.shape and torch.equal(one, other)


def test_what_is_written_is_read(path):
    file = torch.load_gguf(path)
    assert file.metadata == METADATA
    assert list(file) == list(tensors())
    assert all(same(file[name], tensor) for name, tensor in tensors().items())
    assert repr(file) == f"GGUFFile({len(file)} tensors, {len(METADATA)} entries of metadata)"


def test_writes_stay_in_memory(path):
    before = path.read_bytes()
    file = torch.load_gguf(path)
    file["float32"].add_(1)
    file["q8_0"].blocks.zero_()
    assert path.read_bytes() == before
    assert same(torch.load_gguf(path)["float32"], tensors()["float32"])


@pytest.mark.oracle
def test_as_the_gguf_package_reads_and_writes(path, tmp_path):
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(path)
    theirs = {tensor.name: tensor for tensor in reader.tensors}
    for name, tensor in tensors().items():
        content = tensor.blocks if isinstance(tensor, BlockTensor) else tensor
        content = content.view(torch.int16) if content.dtype is torch.bfloat16 else content
        assert theirs[name].data.tobytes() == content.numpy().tobytes()
    writer = gguf.GGUFWriter(tmp_path / "theirs.gguf", "test")
    writer.add_array("names", ["x", "y"])
    writer.add_uint32("count", 5)
    writer.add_tensor("weight", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = torch.load_gguf(tmp_path / "theirs.gguf")
    assert file.metadata["names"] == ["x", "y"] and file.metadata["count"] == 5
    assert torch.equal(file["weight"], torch.arange(6.0).view(2, 3))


def head(tensors: int, entries: int, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries) + rest


def entry(name: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value


def tensor(name: bytes, sizes: tuple, kind: int, offset: int) -> bytes:
    return struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)


HUGE = 1 << 62


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "does not begin with GGUF"),
        (b"GGML" + bytes(20), "does not begin with GGUF"),
        (b"GGUF\3\0", "it ends in its version"),
        (head(0, 0, version=1), "its version is 1; versions 2 and 3"),
        (head(HUGE, 0), "claims 4611686018427387904 tensors"),
        (head(0, HUGE), "claims 4611686018427387904 entries"),
        (head(0, 1, struct.pack("<Q", HUGE) + bytes(20)), "it ends in a name"),
        (head(0, 1, entry(b"x", 99, b"")), "unknown type 99"),
        (head(0, 1, entry(b"x", 8, struct.pack("<Q", HUGE))), "it ends in the value of 'x'"),
        (head(0, 1, entry(b"x", 9, struct.pack("<IQ", 8, HUGE))), "claims 4611686018427387904 strings"),
        (head(0, 1, entry(b"x", 9, struct.pack("<IQ", 4, HUGE))), "claims 4611686018427387904 values"),
        (head(0, 1, entry(b"x", 9, struct.pack("<IQQ", 8, 1, 99) + bytes(9))), "it ends in the array 'x'"),
        (head(0, 1, entry(b"x", 9, struct.pack("<IQ", 9, 1) * 6 + bytes(12))), "nests arrays deeper"),
        (head(0, 2, entry(b"x", 0, b"1") * 2 + bytes(9)), "two entries 'x'"),
        (head(0, 1, entry(b"general.alignment", 4, struct.pack("<I", 3))), "general.alignment is 3"),
        (head(0, 1, entry(b"general.alignment", 4, struct.pack("<I", 1 << 31))), "general.alignment is 2147483648"),
        (head(1, 0, tensor(b"w", (4,) * 5, 0, 0)), "has 5 dimensions"),
        (head(1, 0, tensor(b"w", (4,), 9, 0) + bytes(64)), "the type 9, which is not known"),
        (head(1, 0, tensor(b"w", (33,), 8, 0) + bytes(64)), "not of whole blocks of q8_0"),
        (head(1, 0, tensor(b"w", (), 8, 0) + bytes(64)), "not of whole blocks of q8_0"),
        (head(1, 0, tensor(b"w", (4,), 0, 7) + bytes(64)), "no multiple of the alignment"),
        (head(1, 0, tensor(b"w", (HUGE, HUGE), 0, 0) + bytes(64)), "larger than any memory"),
        (head(1, 0, tensor(b"w", (0, 1 << 61), 28, 0) + bytes(64)), "larger than any memory"),
        (head(1, 0, tensor(b"w", (1 << 59, 0), 8, 0) + bytes(64)), "larger than any memory"),
        (head(1, 0, tensor(b"w", (64,), 0, 0) + bytes(64)), "ends behind the file"),
        (head(1, 0, tensor(b"w", (1,), 0, HUGE) + bytes(64)), "ends behind the file"),
        (head(2, 0, tensor(b"w", (1,), 0, 0) * 2 + bytes(64)), "two tensors 'w'"),
    ],
)
def test_damaged_files(tmp_path, content, said):
    file = tmp_path / "wrong.gguf"
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=said) as caught:
        torch.load_gguf(file)
    assert "wrong.gguf: is not a valid GGUF file" in str(caught.value)


def mutated(content: bytes, generator: random.Random) -> bytes:
    """Content with some bytes changed, mostly in front, or cut off."""
    made = bytearray(content)
    for _ in range(generator.randint(1, 4)):
        reach = len(made) if generator.random() < 0.2 else min(len(made), 1500)
        place = generator.randrange(reach)
        match generator.randrange(4):
            case 0:
                made[place] = generator.randrange(256)
            case 1:
                made[place : place + 8] = struct.pack("<Q", generator.choice([0, 1, 255, 1 << 31, HUGE, (1 << 64) - 1]))
            case 2:
                made[place : place + 4] = struct.pack("<I", generator.choice([0, 8, 9, 14, 1 << 31]))
            case _:
                del made[generator.randrange(16, len(made)) :]
    return bytes(made)


def test_mutated_files(path, tmp_path):
    generator, content, file, read = random.Random(0), path.read_bytes(), tmp_path / "mutated.gguf", 0
    for _ in range(1500):
        file.write_bytes(mutated(content, generator))
        try:
            found = torch.load_gguf(file)
        except CheckpointError:
            continue
        read += 1
        for value in found.values():
            repr(value)
    assert 0 < read < 1500


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(RuntimeError, match="'x' is torch.complex64, which GGUF does not hold"):
        torch.save_gguf({"x": torch.zeros(2, dtype=torch.complex64)}, tmp_path / "x")
    with pytest.raises(RuntimeError, match="'x' has 5 dimensions"):
        torch.save_gguf({"x": torch.zeros(1, 1, 1, 1, 1)}, tmp_path / "x")
    with pytest.raises(TypeError, match="'y' must be a list of str"):
        torch.save_gguf({}, tmp_path / "x", {"y": [1, "a"]})
    with pytest.raises(FileNotFoundError):
        torch.load_gguf(tmp_path / "nothing")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("alignment", [1, 8, 64])
def test_alignment_of_the_metadata(tmp_path, alignment):
    tensors = {"a": torch.arange(5.0), "b": torch.arange(3.0)}
    torch.save_gguf(tensors, tmp_path / "a.gguf", {"general.alignment": alignment})
    found = torch.load_gguf(tmp_path / "a.gguf")
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    with pytest.raises(ValueError, match=r"general\.alignment is 33"):
        torch.save_gguf(tensors, tmp_path / "b.gguf", {"general.alignment": 33})
