"""Read torch's checkpoints from before 1.6: four pickles, a list of storage keys, then the storages one after another.

In: a ByteSource. Out: the object. The pickles are a magic number, a protocol version, facts about the machine that
wrote the file, and the object; each storage is its element count as 8 bytes and then its elements, always in
little-endian order.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.storage import UntypedStorage
from rushlight.serialization.errors import CheckpointError, UnpicklingError
from rushlight.serialization.source import ByteSource
from rushlight.serialization.sparse import values_follow
from rushlight.serialization.storages import MapLocation, StorageClaim, StorageTable, swap_bytes
from rushlight.serialization.unpickler import MAX_PICKLE_BYTES, ReadPickle, Unpickler

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_COUNT_BYTES = 8


def load_legacy(source: ByteSource, map_location: MapLocation, read: ReadPickle) -> Any:
    """Return the object in a legacy checkpoint, by `read`.

    The source is positioned after it, so that several in one file can be read in turn.
    """
    source.file.seek(source.start)
    _check_magic(source)
    version = _plain_pickle(source)
    if version != PROTOCOL_VERSION:
        raise CheckpointError(f"declares the protocol version {_describe(version)}, and {PROTOCOL_VERSION} is understood")
    _plain_pickle(source)
    allocator = _Allocator(source)
    table = StorageTable(allocator.reserve, map_location)
    with values_follow():
        loaded = read(source.file, _pickle_end(source), table.persistent_load)
        _fill(source, _plain_pickle(source), allocator, table)
    return loaded


def _check_magic(source: ByteSource) -> None:
    start = source.read_at(0, min(source.size, 16))
    source.file.seek(source.start)
    try:
        magic = _plain_pickle(source)
    except UnpicklingError:
        magic = None
    if magic != MAGIC_NUMBER:
        raise CheckpointError(
            f"is not a checkpoint: it begins with {start!r}, where a zip archive or the magic number of torch's older "
            "format is expected (a safetensors file is read by rushlight.serialization.load_safetensors)"
        )


def _plain_pickle(source: ByteSource) -> Any:
    """Return the next pickle of the file, which must contain no globals and no storages."""
    return Unpickler(source.file, _pickle_end(source), _refuse_global, _refuse_storage).load()


def _refuse_global(module: str, name: str) -> Any:
    raise UnpicklingError(f"the header names the global '{module[:99]}.{name[:99]}', and may hold only plain values")


def _refuse_storage(identity: Any) -> Any:
    raise UnpicklingError("the header refers to a storage, and may hold only plain values")


def _pickle_end(source: ByteSource) -> int:
    return min(source.file.tell() + MAX_PICKLE_BYTES, source.start + source.size)


def _describe(value: Any) -> str:
    return str(value) if type(value) is int and abs(value) < 1 << 64 else type(value).__name__


class _Allocator:
    """Allocates the storages that the pickle declares, in total at most the size of the file; their bytes follow the pickle."""

    def __init__(self, source: ByteSource):
        self.size = source.size
        self.reserved = 0

    def reserve(self, claim: StorageClaim, where: str) -> UntypedStorage:
        """Return an uninitialised storage."""
        self.reserved += claim.nbytes
        if self.reserved > self.size:
            raise CheckpointError(f"declares storages of {self.reserved} bytes in a file of {self.size}; truncated?")
        if where == "meta":
            return UntypedStorage(claim.nbytes, device="meta")
        storage = UntypedStorage(claim.nbytes)
        storage.numpy()[:] = 0
        return storage


def _fill(source: ByteSource, keys: Any, allocator: _Allocator, table: StorageTable) -> None:
    if type(keys) is not list or not all(type(key) is str for key in keys):
        raise CheckpointError("its list of storages is malformed")
    if len(keys) != len(set(keys)) or set(keys) != set(table.loaded):
        raise CheckpointError("its list of storages does not agree with the storages that its tensors use")
    offset = source.file.tell() - source.start
    for key in keys:
        storage, claim = table.loaded[key]
        _check_count(source, offset, claim)
        if storage.device.type != "meta":
            here = UntypedStorage(claim.nbytes) if storage.is_cuda else storage
            source.read_into(offset + _COUNT_BYTES, here.numpy())
            swap_bytes(here, claim.element_type, "little")
            if here is not storage:
                storage.copy_(here)
        offset += _COUNT_BYTES + claim.nbytes
    source.file.seek(source.start + offset)


def _check_count(source: ByteSource, offset: int, claim: StorageClaim) -> None:
    count = int.from_bytes(source.read_at(offset, _COUNT_BYTES), "little", signed=True)
    if count != claim.count:
        raise CheckpointError(f"storage '{claim.key}' is declared with {claim.count} elements, and {count} follow")
