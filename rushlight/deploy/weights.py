"""The weights of an exported model as one file: a header, then each tensor's elements as they lie in memory.

In: tensors. Out: the offset of each in the file, and the file's bytes. Tensors with the same elements are written once.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

from rushlight.core.storage import aligned
from rushlight.core.tensor import Tensor
from rushlight.inductor.launch import reach

MAGIC = b"RLWEIGHT"
_HEADER = struct.Struct("<8sQ32s")  # the layout of deployed.h: magic, size of the file, identity of the model


class Weights:
    """Collects tensors."""

    def __init__(self) -> None:
        self.size = aligned(_HEADER.size)
        self._places: dict[tuple[bytes, int], int] = {}
        self._parts: list[tuple[int, Tensor]] = []
        self._known: dict[tuple, int] = {}
        self._kept: list[Tensor] = []  # keeps the tensors alive, so that their ids stay unique

    def add(self, tensor: Tensor) -> int:
        """Return the offset of a tensor's first element in the file. Its other elements are found by its strides."""
        impl = tensor._impl
        key = (id(impl.storage), impl.storage_offset, impl.sizes, impl.strides, impl.dtype)
        if key not in self._known:
            self._kept.append(tensor)
            self._known[key] = self._place(tensor)
        return self._known[key]

    def _place(self, tensor: Tensor) -> int:
        content = _bytes_of(tensor)
        same = (hashlib.sha256(content).digest(), len(content))
        if same not in self._places:
            self._places[same] = self.size
            self._parts.append((self.size, tensor))
            self.size += aligned(max(len(content), 1))
        return self._places[same]

    def digest(self) -> str:
        """Return a hash of everything added."""
        found = hashlib.sha256()
        for (content, _), position in self._places.items():
            found.update(content + position.to_bytes(8, "little"))
        return found.hexdigest()

    def chunks(self, identity: bytes) -> Iterator[bytes]:
        """Yield the file's bytes, for the model with this identity of 32 bytes."""
        yield _HEADER.pack(MAGIC, self.size, identity)
        at = _HEADER.size
        for position, tensor in self._parts:
            content = _bytes_of(tensor)
            yield bytes(position - at)
            yield content
            at = position + len(content)
        yield bytes(self.size - at)


def _bytes_of(tensor: Tensor) -> bytes:
    """Return the memory from a tensor's first element to the end of its last."""
    impl = tensor._impl
    begin = impl.storage_offset * impl.dtype.itemsize
    return impl.storage.bytes()[begin : begin + reach(impl.sizes, impl.strides, impl.dtype)].tobytes()
