"""The weights of an exported model as one file: a header, then each tensor's elements as they lie in memory.

In: tensors. Out: where each lies in the file, and its bytes. Tensors of the same elements are written once.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

from rushlight.core.storage import aligned
from rushlight.core.tensor import Tensor
from rushlight.inductor.launch import reach

MAGIC = b"RLWEIGHT"
_HEADER = struct.Struct("<8sQ32s")  # as deployed.h has it: magic, the size of the file, the identity of the model


class Weights:
    """Collects tensors."""

    def __init__(self) -> None:
        self.size = aligned(_HEADER.size)
        self._places: dict[tuple[bytes, int], int] = {}
        self._parts: list[tuple[int, Tensor]] = []
        self._known: dict[tuple, int] = {}
        self._kept: list[Tensor] = []  # so that their ids stay their own

    def add(self, tensor: Tensor) -> int:
        """Where the first element of a tensor lies in the file; its others are as far from it as in memory."""
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
        """A name for all that has been added."""
        found = hashlib.sha256()
        for (content, _), place in self._places.items():
            found.update(content + place.to_bytes(8, "little"))
        return found.hexdigest()

    def chunks(self, identity: bytes) -> Iterator[bytes]:
        """The file's bytes, for the model of that name, 32 bytes."""
        yield _HEADER.pack(MAGIC, self.size, identity)
        at = _HEADER.size
        for place, tensor in self._parts:
            content = _bytes_of(tensor)
            yield bytes(place - at)
            yield content
            at = place + len(content)
        yield bytes(self.size - at)


def _bytes_of(tensor: Tensor) -> bytes:
    """The memory from the first element of a tensor to behind its last one."""
    impl = tensor._impl
    begin = impl.storage_offset * impl.dtype.itemsize
    return impl.storage.bytes()[begin : begin + reach(impl.sizes, impl.strides, impl.dtype)].tobytes()
