"""Read and write GGUF files: named tensors, many of them block-quantized, and metadata.

In: a path. Out: a `GGUFFile`, whose tensors lie in the mapped file; and the reverse. The format is defined at
https://github.com/ggml-org/ggml (docs/gguf.md). Files are untrusted: every count, offset and size is checked against the file's
length before anything of that size is allocated.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from rushlight.core.blocks import FORMATS, BlockFormat
from rushlight.core.dtype import bfloat16, dtype, float16, float32, float64, int8, int16, int32, int64
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.quantized.blocks import BlockTensor
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.saving import replace_file

_MAGIC, _VERSIONS, _NEWEST = b"GGUF", (2, 3), 3
_MAX_DIMS, _MAX_NESTED, _MAX_ALIGNMENT = 4, 4, 1 << 20
_MAX_ELEMENTS = 1 << 56  # for the product of sizes (counting 0 as 1): strides and sizes in bytes then fit in 64 bits
_PLAIN: dict[int, dtype] = {
    0: float32, 1: float16, 24: int8, 25: int16, 26: int32, 27: int64, 28: float64, 30: bfloat16,
}  # fmt: skip
_BLOCKS: dict[int, BlockFormat] = {each.number: each for each in FORMATS.values() if each.in_gguf}
_SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_NUMBER_OF = {"str": _STRING, "bool": 7, "float": 6, "int": 11}


class GGUFMetadata(Mapping):
    """The metadata of a GGUF file, by name. Lists, which may be vocabularies of megabytes, are read lazily."""

    def __init__(self, values: dict[str, Any], lists: dict[str, Callable[[], list]]):
        self._values, self._lists = values, lists

    def __getitem__(self, name: str) -> Any:
        if self._values[name] is None:
            self._values[name] = self._lists[name]()
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = {name: "[...]" if name in self._lists else repr(value) for name, value in self._values.items()}
        return "{" + ", ".join(f"{name!r}: {text}" for name, text in shown.items()) + "}"


class GGUFFile(Mapping):
    """The tensors of a GGUF file by name, in its order; `metadata` has the other entries.

    Tensors are mapped copy-on-write from the file. Block-quantized ones are `BlockTensor`s.

    Example:
        >>> import rushlight as torch, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "small.gguf")
        >>> torch.save_gguf({"weight": torch.ones(2, 3)}, path, {"general.name": "small"})
        >>> file = torch.load_gguf(path)
        >>> file.metadata["general.name"], file["weight"].shape
        ('small', torch.Size([2, 3]))
    """

    def __init__(self, metadata: GGUFMetadata, tensors: dict[str, Tensor]):
        self.metadata = metadata
        self._tensors = tensors

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"GGUFFile({len(self)} tensors, {len(self.metadata)} entries of metadata)"


def load_gguf(f: str | os.PathLike) -> GGUFFile:
    """Read a GGUF file (version 2 or 3, little-endian) without copying its tensors.

    RuntimeError, naming the file and the place, where it is truncated, contradicts itself, or holds a type of tensors that is
    not known; FileNotFoundError where there is none.
    """
    path = os.fspath(f)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        # Map copy-on-write: tensors may be written to without changing the file.
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    return _Reader(path, content).file()


class _Reader:
    """Reads a file from front to back."""

    def __init__(self, path: str, content: mmap.mmap | bytes):
        self.path, self.content, self.at, self.end = path, content, 0, len(content)

    def fail(self, problem: str) -> CheckpointError:
        return CheckpointError(f"{self.path}: is not a valid GGUF file: {problem}")

    def take(self, count: int, what: str) -> int:
        """Consume bytes; returns their offset."""
        begin = self.at
        if count > self.end - begin:
            raise self.fail(f"it ends in {what} at byte {begin}")
        self.at += count
        return begin

    def number(self, code: str, what: str) -> Any:
        return struct.unpack_from("<" + code, self.content, self.take(struct.calcsize("<" + code), what))[0]

    def text(self, what: str) -> str:
        count = self.number("Q", what)
        begin = self.take(count, what)
        return self.content[begin : begin + count].decode("utf-8", "replace")

    def file(self) -> GGUFFile:
        if self.content[: len(_MAGIC)] != _MAGIC:
            raise self.fail("it does not begin with GGUF")
        self.at = len(_MAGIC)
        version = self.number("I", "its version")
        if version not in _VERSIONS:
            raise self.fail(f"its version is {version}; versions {_VERSIONS[0]} and {_VERSIONS[1]} are known")
        tensors, entries = self.number("Q", "its counts"), self.number("Q", "its counts")
        metadata = self.metadata(entries)
        alignment = metadata.get("general.alignment", 32)
        if not _is_alignment(alignment):
            raise self.fail(f"general.alignment is {alignment!r}, not a power of two up to {_MAX_ALIGNMENT}")
        listed = [self.entry() for _ in self.counted(tensors, 24, "tensors")]
        begin = -(-self.at // alignment) * alignment
        found: dict[str, Tensor] = {}
        for name, sizes, kind, offset in listed:
            if name in found:
                raise self.fail(f"there are two tensors {name!r}")
            if offset % alignment:
                raise self.fail(f"the tensor {name!r} lies at {offset}, which is no multiple of the alignment {alignment}")
            found[name] = self.tensor(name, sizes, kind, begin + offset)
        return GGUFFile(metadata, found)

    def counted(self, count: int, least: int, what: str) -> range:
        """Return a count, checked against the remaining bytes for items of at least this many bytes."""
        if count > (self.end - self.at) // least:
            raise self.fail(f"it claims {count} {what}, more than the file has room for")
        return range(count)

    def metadata(self, entries: int) -> GGUFMetadata:
        found: dict[str, Any] = {}
        lists: dict[str, Callable[[], list]] = {}
        for _ in self.counted(entries, 13, "entries of metadata"):
            name = self.text("a name")
            if name in found:
                raise self.fail(f"there are two entries {name!r}")
            kind = self.number("I", f"the type of {name!r}")
            if kind == _ARRAY:
                found[name], lists[name] = None, self.array(name, 0)
            else:
                found[name] = self.value(kind, name)
        return GGUFMetadata(found, lists)

    def value(self, kind: int, name: str) -> Any:
        if kind == _STRING:
            return self.text(f"the value of {name!r}")
        if kind not in _SCALARS:
            raise self.fail(f"{name!r} has the unknown type {kind}")
        return self.number(_SCALARS[kind], f"the value of {name!r}")

    def array(self, name: str, depth: int) -> Callable[[], list]:
        """Return a lazy list: its bytes are skipped and checked to be present."""
        kind, count = self.number("I", f"the type of {name!r}"), self.number("Q", f"the length of {name!r}")
        if depth == _MAX_NESTED:
            raise self.fail(f"{name!r} nests arrays deeper than {_MAX_NESTED}")
        if kind == _STRING:
            return self.strings(self.counted(count, 8, f"strings in {name!r}"), name)
        if kind == _ARRAY:
            inner = [self.array(name, depth + 1) for _ in self.counted(count, 12, f"arrays in {name!r}")]
            return lambda: [make() for make in inner]
        if kind not in _SCALARS:
            raise self.fail(f"{name!r} is an array of the unknown type {kind}")
        code = _SCALARS[kind]
        size = struct.calcsize("<" + code)
        self.counted(count, size, f"values in {name!r}")
        begin = self.take(count * size, f"the array {name!r}")
        return np.frombuffer(self.content, f"<{code}" if code != "?" else "?", count, begin).tolist

    def strings(self, places: range, name: str) -> Callable[[], list[str]]:
        """Return many strings at once: vocabularies have hundreds of thousands."""
        content, begin, at, end = self.content, self.at, self.at, self.end
        unpack = struct.Struct("<Q").unpack_from
        for _ in places:
            if at + 8 > end or at + 8 + (count := unpack(content, at)[0]) > end:
                raise self.fail(f"it ends in the array {name!r} at byte {at}")
            at += 8 + count
        self.at = at

        def make() -> list[str]:
            at, found = begin, []
            for _ in places:
                count = unpack(content, at)[0]
                at += 8 + count
                found.append(content[at - count : at].decode("utf-8", "replace"))
            return found

        return make

    def entry(self) -> tuple[str, tuple[int, ...], int, int]:
        """Return a tensor's name, sizes, type, and its offset from the first tensor."""
        name = self.text("a tensor's name")
        dims = self.number("I", f"the dimensions of {name!r}")
        if dims > _MAX_DIMS:
            raise self.fail(f"the tensor {name!r} has {dims} dimensions; there are at most {_MAX_DIMS}")
        sizes = tuple(self.number("Q", f"the sizes of {name!r}") for _ in range(dims))[::-1]
        return name, sizes, self.number("I", f"the type of {name!r}"), self.number("Q", f"the offset of {name!r}")

    def tensor(self, name: str, sizes: tuple[int, ...], kind: int, begin: int) -> Tensor:
        layout, plain = _BLOCKS.get(kind), _PLAIN.get(kind)
        if layout is None and plain is None:
            raise self.fail(f"the tensor {name!r} has the type {kind}, which is not known")
        if math.prod(max(size, 1) for size in sizes) > _MAX_ELEMENTS:
            raise self.fail(f"the tensor {name!r} of the sizes {list(sizes)} is larger than any memory")
        if layout is not None:
            if not sizes or sizes[-1] % layout.elements:
                raise self.fail(f"the tensor {name!r} of the sizes {list(sizes)} is not of whole blocks of {layout.name}")
            stored = (*sizes[:-1], sizes[-1] // layout.elements * layout.nbytes)
            content = tensor_from_array(self.elements(name, "u1", stored, 1, begin))
            return BlockTensor(content, layout.name)
        code = "<i2" if plain is bfloat16 else plain.numpy.str
        made = tensor_from_array(self.elements(name, code, sizes, plain.itemsize, begin))
        return made.view(bfloat16) if plain is bfloat16 else made

    def elements(self, name: str, code: str, sizes: tuple[int, ...], itemsize: int, begin: int) -> np.ndarray:
        count = math.prod(sizes)
        if begin + count * itemsize > self.end:
            where = f"of the sizes {list(sizes)} at byte {begin}"
            raise self.fail(f"the tensor {name!r} {where} ends behind the file's {self.end} bytes")
        return np.frombuffer(self.content, code, count, begin).reshape(sizes)


def _is_alignment(value: Any) -> bool:
    return type(value) is int and 1 <= value <= _MAX_ALIGNMENT and not value & (value - 1)


# Writing


def save_gguf(tensors: Mapping[str, Tensor], f: str | os.PathLike, metadata: Mapping[str, Any] | None = None) -> None:
    """Write named tensors, which may be `BlockTensor`s, as a GGUF file of version 3.

    Args:
        tensors: by name; of float32, float16, bfloat16, float64, int8 to int64, or in blocks; up to 4 dimensions.
        f: the file, which is replaced at once.
        metadata: str, bool, int and float (written as float32), or lists of one of them. `general.alignment` is that of tensors
            in the file, in bytes: a power of two, 32 by default.

    ValueError for another alignment; RuntimeError, naming the tensor, for other dtypes and more dimensions; TypeError for other
    metadata.
    """
    alignment = (metadata or {}).get("general.alignment", 32)
    if not _is_alignment(alignment):
        raise ValueError(f"save_gguf: general.alignment is {alignment!r}, not a power of two up to {_MAX_ALIGNMENT}")
    head = [_MAGIC, struct.pack("<IQQ", _NEWEST, len(tensors), len(metadata or {}))]
    for name, value in (metadata or {}).items():
        head += [_encode_string(name), *_encode_value(name, value)]
    offset, bodies = 0, []
    for name, tensor in tensors.items():
        kind, body = _encode_tensor(name, tensor)
        head += [_encode_string(name), struct.pack(f"<I{tensor.dim()}QIQ", tensor.dim(), *tensor.shape[::-1], kind, offset)]
        bodies.append(body)
        offset += -(-len(body) // alignment) * alignment
    begin = b"".join(head)
    padded = [begin, bytes(-len(begin) % alignment)]
    for body in bodies:
        padded += [body, bytes(-len(body) % alignment)]
    replace_file(os.fspath(f), lambda file: file.writelines(padded))


def _encode_string(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _encode_value(name: str, value: Any) -> list[bytes]:
    if isinstance(value, list | tuple):
        kinds = {type(each).__name__ for each in value}
        if len(kinds) != 1 or not kinds <= _NUMBER_OF.keys():
            raise TypeError(f"save_gguf: the metadata {name!r} must be a list of str, bool, int or float, all the same")
        kind = _NUMBER_OF[kinds.pop()]
        return [struct.pack("<IIQ", _ARRAY, kind, len(value)), *(_pack_scalar(kind, each) for each in value)]
    kind = _NUMBER_OF.get(type(value).__name__)
    if kind is None:
        raise TypeError(f"save_gguf: the metadata {name!r} must be str, bool, int, float or a list, got {type(value).__name__}")
    return [struct.pack("<I", kind), _pack_scalar(kind, value)]


def _pack_scalar(kind: int, value: Any) -> bytes:
    return _encode_string(value) if kind == _STRING else struct.pack("<" + _SCALARS[kind], value)


def _encode_tensor(name: str, tensor: Tensor) -> tuple[int, bytes]:
    """Return a tensor's type and bytes."""
    if tensor.dim() > _MAX_DIMS:
        raise RuntimeError(f"save_gguf: {name!r} has {tensor.dim()} dimensions; GGUF holds up to {_MAX_DIMS}")
    if isinstance(tensor, BlockTensor):
        if not FORMATS[tensor.format].in_gguf:
            raise RuntimeError(f"save_gguf: {name!r} is in blocks of {tensor.format}, which GGUF does not hold")
        return FORMATS[tensor.format].number, tensor.blocks.detach().contiguous().numpy(force=True).tobytes()
    kind = next((number for number, each in _PLAIN.items() if each is tensor.dtype), None)
    if kind is None:
        raise RuntimeError(f"save_gguf: {name!r} is {tensor.dtype}, which GGUF does not hold")
    plain = tensor.detach().cpu().contiguous()
    return kind, (plain.view(int16) if plain.dtype is bfloat16 else plain).numpy(force=True).tobytes()
