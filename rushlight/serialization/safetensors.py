"""Safetensors files, both ways.

In: a path or a binary file with named tensors. Out: a dict of contiguous CPU tensors, and the reverse. The format,
defined at https://github.com/huggingface/safetensors, is the length of a header in 8 bytes, the header in JSON, and
the bytes of the tensors without gaps, in little-endian order. They are read straight into the tensors' storages.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple

from rushlight.core.dtype import dtype
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
_LENGTH_BYTES = 8
_LARGEST_HEADER = 100_000_000


def load_safetensors(f: str | os.PathLike | BinaryIO) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, in the order of its header.

    Raises RuntimeError, naming the file, when it is truncated, its header is too large or malformed, its offsets are
    wrong, or it holds a dtype that tensors do not have.
    """
    source = ByteSource(f)
    try:
        header, start = _read_header(source)
        entries = [_Entry.parse(name, fields) for name, fields in header.items() if name != "__metadata__"]
        _check_coverage(entries, source.size - start)
        return {entry.name: _make_tensor(source, start, entry) for entry in entries}
    except CheckpointError as error:
        raise CheckpointError(f"{source.name}: is not a valid safetensors file: {error}") from error
    finally:
        source.close()


def _read_header(source: ByteSource) -> tuple[dict, int]:
    """The header as a dict, and where the bytes of the tensors begin."""
    length = int.from_bytes(source.read_at(0, _LENGTH_BYTES), "little")
    if length > min(_LARGEST_HEADER, source.size - _LENGTH_BYTES):
        raise CheckpointError(
            f"declares a header of {length} bytes in a file of {source.size}; at most {_LARGEST_HEADER} are accepted"
        )
    try:
        header = json.loads(source.read_at(_LENGTH_BYTES, length), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"the header is not the JSON that it should be: {str(error)[:200]}") from None
    if type(header) is not dict:
        raise CheckpointError("the header is not a JSON object")
    return header, _LENGTH_BYTES + length


def _without_repeats(pairs: list[tuple[str, object]]) -> dict:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name appears twice")
    return made


class _Entry(NamedTuple):
    name: str
    dtype: dtype
    sizes: tuple[int, ...]
    begin: int
    end: int

    @staticmethod
    def parse(name: str, fields: object) -> _Entry:
        """The header's entry of a tensor, once its fields are seen to agree."""
        if type(fields) is not dict or fields.keys() != {"dtype", "shape", "data_offsets"}:
            raise CheckpointError(f"tensor '{name[:200]}' does not have the fields dtype, shape and data_offsets")
        code, sizes, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
        if not (_are_sizes(sizes) and _are_sizes(offsets) and len(offsets) == 2 and type(code) is str):
            raise CheckpointError(f"tensor '{name[:200]}' has a malformed dtype, shape or data_offsets")
        if code not in _DTYPES:
            raise CheckpointError(f"tensor '{name[:200]}' has dtype {code[:20]}; supported are {', '.join(_DTYPES)}")
        nbytes = math.prod(sizes) * _DTYPES[code].itemsize
        if nbytes != offsets[1] - offsets[0]:
            raise CheckpointError(
                f"tensor '{name[:200]}' of shape {sizes} and dtype {code} needs {nbytes} bytes, not offsets {offsets}"
            )
        return _Entry(name, _DTYPES[code], tuple(sizes), *offsets)


def _are_sizes(numbers: object) -> bool:
    return type(numbers) is list and len(numbers) <= 64 and all(type(n) is int and 0 <= n < 1 << 63 for n in numbers)


def _check_coverage(entries: list[_Entry], available: int) -> None:
    position = 0
    for entry in sorted(entries, key=lambda entry: (entry.begin, entry.end)):
        if entry.begin != position:
            raise CheckpointError(f"tensor '{entry.name[:200]}' begins at byte {entry.begin} instead of {position}")
        position = entry.end
    if position != available:
        raise CheckpointError(f"its tensors take {position} bytes, and {available} follow the header; truncated?")


def _make_tensor(source: ByteSource, start: int, entry: _Entry) -> Tensor:
    storage = UntypedStorage(entry.end - entry.begin)
    if storage.nbytes():
        source.read_into(start + entry.begin, storage.numpy())
    return make_tensor(storage, entry.dtype, 0, entry.sizes, contiguous_strides(entry.sizes))


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
