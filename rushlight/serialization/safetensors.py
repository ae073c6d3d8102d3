"""Safetensors files, both ways.

In: a path or a binary file with named tensors. Out: a dict of contiguous CPU tensors, and the reverse. The format is
defined at https://github.com/huggingface/safetensors; the `safetensors` package reads it, checking header, offsets and
sizes. Writing is a JSON header and the bytes, done here so that large tensors are not copied.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import BinaryIO

import safetensors
from safetensors import SafetensorError

from rushlight.core.storage import UntypedStorage
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor
from rushlight.serialization.dtypes import DTYPE_BY_NAME
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.rebuild import make_tensor
from rushlight.serialization.saving import replace_file
from rushlight.serialization.source import ByteSource

_CODES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "complex64": "C64", "bool": "BOOL",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
}  # fmt: skip
_DTYPES = {code: DTYPE_BY_NAME[name] for name, code in _CODES.items() if name in DTYPE_BY_NAME}
_HEADER_ALIGNMENT = 8


def load_safetensors(f: str | os.PathLike | BinaryIO) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name.

    Raises RuntimeError, naming the file, when it is truncated, its header is too large or malformed, its offsets are
    wrong, or it holds a dtype that tensors do not have.
    """
    source = ByteSource(f)
    try:
        entries = safetensors.deserialize(source.read_at(0, source.size))
        return {name: _make_tensor(name, fields) for name, fields in entries}
    except SafetensorError as error:
        raise CheckpointError(f"{source.name}: is not a valid safetensors file: {error}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{source.name}: {error}") from error
    finally:
        source.close()


def _make_tensor(name: str, fields: dict) -> Tensor:
    element_type = _DTYPES.get(fields["dtype"])
    if element_type is None:
        raise CheckpointError(f"tensor '{name}' has dtype {fields['dtype']}; supported are {', '.join(_DTYPES)}")
    sizes = tuple(fields["shape"])
    storage = UntypedStorage.from_buffer(fields["data"])
    return make_tensor(storage, element_type, 0, sizes, contiguous_strides(sizes))


def save_safetensors(
    tensors: Mapping[str, Tensor], path: str | os.PathLike, metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors, each contiguously, and text `metadata`. The file at `path` is replaced only when complete.

    Raises TypeError for names or metadata that are not strings and values that are not tensors; ValueError for tensors
    that share a storage, which the format cannot express, and for dtypes that it lacks.
    """
    _check_arguments(tensors, metadata)
    _check_sharing(tensors)
    # Widest elements first: then every tensor begins at a multiple of its element size.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header = _header(ordered, metadata)

    def write(stream: BinaryIO) -> None:
        stream.write(len(header).to_bytes(8, "little") + header)
        for _, tensor in ordered:
            stream.write(tensor.detach().contiguous().numpy().tobytes())

    replace_file(path, write)


def _header(ordered: list[tuple[str, Tensor]], metadata: Mapping[str, str] | None) -> bytes:
    fields: dict[str, object] = {} if metadata is None else {"__metadata__": dict(metadata)}
    offset = 0
    for name, tensor in ordered:
        end = offset + tensor.nbytes
        fields[name] = {"dtype": _code(name, tensor), "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % _HEADER_ALIGNMENT)


def _code(name: str, tensor: Tensor) -> str:
    code = _CODES.get(tensor.dtype.name)
    if code is None:
        raise ValueError(f"tensor '{name}' has dtype {tensor.dtype}; safetensors has {', '.join(_CODES)}")
    return code


def _check_arguments(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> None:
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor) or name == "__metadata__":
            raise TypeError(f"expected names and tensors, but got {name!r:.100} -> {type(tensor).__name__}")
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata maps strings to strings, but got {type(key).__name__} -> {type(value).__name__}")


def _check_sharing(tensors: Mapping[str, Tensor]) -> None:
    owners: dict[UntypedStorage, str] = {}
    for name, tensor in tensors.items():
        first = owners.setdefault(tensor.untyped_storage(), name)
        if first != name and tensor.numel():
            raise ValueError(
                f"'{first}' and '{name}' share memory, which safetensors cannot express; "
                "clone() one of them, or use rushlight.save"
            )
