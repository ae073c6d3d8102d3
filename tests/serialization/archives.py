"""Builds checkpoint files piece by piece, so that tests can corrupt any piece."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile

import numpy as np

from rushlight.core.tensor import Tensor, from_numpy
from rushlight.serialization import load, save
from rushlight.serialization.legacy_format import MAGIC_NUMBER
from rushlight.serialization.pickler import Pickler


def zip_bytes(records: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip archive with these records."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in records:
            archive.writestr(name, data)
    return buffer.getvalue()


def checkpoint(program: bytes, storages: dict[str, bytes] | None = None, **records: bytes) -> bytes:
    """A zip checkpoint whose pickle runs `program`, at protocol 2."""
    parts = [("archive/data.pkl", b"\x80\x02" + program + b".")]
    parts += [(f"archive/data/{key}", data) for key, data in (storages or {}).items()]
    parts += [(f"archive/{name}", data) for name, data in records.items()]
    return zip_bytes([*parts, ("archive/version", b"3\n")])


def load_bytes(data: bytes, **options) -> object:
    """Load a checkpoint from memory."""
    return load(io.BytesIO(data), **options)


def save_bytes(value: object) -> bytes:
    """Save a checkpoint to memory."""
    buffer = io.BytesIO()
    save(value, buffer)
    return buffer.getvalue()


def legacy_bytes(value: object) -> bytes:
    """A checkpoint in the format from before torch 1.6."""
    pickler = Pickler()
    program = pickler.dump(value)
    facts = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    header = b"".join(pickle.dumps(part, 2) for part in (MAGIC_NUMBER, 1001, facts))
    keys = pickle.dumps([str(key) for key in range(len(pickler.storages))], 2)
    counts = {int(key): element_type.itemsize for key, element_type in pickler.storage_keys.values()}
    body = b"".join(
        struct.pack("<q", storage.nbytes // counts[key]) + storage.bytes().tobytes()
        for key, storage in enumerate(pickler.storages)
    )
    return header + program + keys + body


def text(value: str) -> bytes:
    """The instruction that pushes a string."""
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def integer(value: int) -> bytes:
    """The instruction that pushes an integer of up to 64 bits."""
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def group(*parts: bytes) -> bytes:
    """The instructions that push a tuple."""
    return b"(" + b"".join(parts) + b"t"


def named(module: str, name: str) -> bytes:
    """The instruction that pushes a global."""
    return f"c{module}\n{name}\n".encode()


def call(module: str, name: str, *parts: bytes) -> bytes:
    """The instructions that apply a global to arguments."""
    return named(module, name) + group(*parts) + b"R"


def storage(count: int, key: str = "0", kind: str = "FloatStorage", location: str = "cpu") -> bytes:
    """The instructions that push a storage."""
    return group(text("storage"), named("torch", kind), text(key), text(location), integer(count)) + b"Q"


EMPTY_HOOKS = b"ccollections\nOrderedDict\n)R"


def tensor_program(
    count: int, offset: int, sizes: tuple, strides: tuple, grad: bytes = b"\x89", kind: str = "FloatStorage"
) -> bytes:
    """The instructions that push a tensor over a storage of `count` elements."""
    shape, steps = (group(*map(integer, numbers)) for numbers in (sizes, strides))
    parts = (storage(count, kind=kind), integer(offset), shape, steps, grad, EMPTY_HOOKS)
    return call("torch._utils", "_rebuild_tensor_v2", *parts)


def example() -> dict[str, object]:
    """A small state dict with a view, a shared storage, and a few plain values."""
    base = from_numpy(np.arange(24, dtype=np.float32))
    return {
        "weight": view(base, (4, 5), (5, 1), 2),
        "transposed": view(base, (3, 4), (1, 3), 0),
        "count": from_numpy(np.array(7)),
        "names": ["a", ("b", 1.5, None, True)],
    }


def view(base: Tensor, sizes: tuple, strides: tuple, offset: int) -> Tensor:
    """A view of a tensor by sizes, strides and offset."""
    impl = base._impl.alias(sizes, strides, offset)
    made = object.__new__(Tensor)
    made._impl = impl
    return made
