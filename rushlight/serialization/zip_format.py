"""Read torch's zip checkpoints: `data.pkl` for the structure, one record per storage, and a few small ones that describe the
file.

In: a ByteSource. Out: the object. The records are named `<archive>/data.pkl`, `<archive>/data/<key>`,
`<archive>/byteorder` and `<archive>/version`.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from rushlight.core.storage import UntypedStorage
from rushlight.serialization.errors import CheckpointError, ScriptArchiveError
from rushlight.serialization.options import byte_order, skips_data
from rushlight.serialization.source import ByteSource
from rushlight.serialization.storages import MapLocation, StorageClaim, StorageTable, swap_bytes
from rushlight.serialization.unpickler import MAX_PICKLE_BYTES, ReadPickle
from rushlight.serialization.zip_reader import ZipReader

_SMALL_RECORD = 64
_NEWEST_VERSION = 10
_ALIGNMENT = 64


def load_zip(source: ByteSource, map_location: MapLocation, mapped: bool, read: ReadPickle) -> Any:
    """Return the object in a zip checkpoint, by `read`. When `mapped`, storages are pages of the file, copied on write and not
    checksummed.
    """
    reader = _StorageReader(ZipReader(source), mapped)
    pickled = reader.archive.read(reader.root + "data.pkl", MAX_PICKLE_BYTES)
    table = StorageTable(reader.read, map_location)
    return read(io.BytesIO(pickled), len(pickled), table.persistent_load)


class _StorageReader:
    """Reads storages of one archive."""

    def __init__(self, archive: ZipReader, mapped: bool):
        self.archive = archive
        self.root = _find_root(archive)
        self.order = _byte_order(archive, self.root)
        self.memory = archive.source.map() if mapped else None
        _check_version(archive, self.root)

    def read(self, claim: StorageClaim, where: str) -> UntypedStorage:
        """Return the storage of a claim, whose size must match its record's."""
        record = self.archive.find(f"{self.root}data/{claim.key}")
        if record.size != claim.nbytes:
            raise CheckpointError(
                f"storage '{claim.key}' is declared with {claim.nbytes} bytes, and its record has {record.size}"
            )
        if where == "meta":
            return UntypedStorage(record.size, device="meta")
        if skips_data():
            return UntypedStorage.from_buffer(np.zeros(record.size, np.uint8), copy=False)
        if self.memory is not None and record.size and record.offset % _ALIGNMENT == 0:
            pages = np.frombuffer(self.memory, np.uint8, record.size, self.archive.source.start + record.offset)
            storage = UntypedStorage.from_buffer(pages, copy=False)
        else:
            storage = UntypedStorage(record.size)
            if record.size:
                self.archive.read_into(record.name, storage.numpy())
        swap_bytes(storage, claim.element_type, self.order)
        return storage


def _find_root(archive: ZipReader) -> str:
    """Return the folder that contains all records, with its slash."""
    folders = [name.removesuffix("data.pkl") for name in archive.records if name.endswith("/data.pkl")]
    roots = [folder for folder in folders if folder.count("/") == 1]
    if len(roots) != 1:
        raise CheckpointError(f"is a zip archive with {len(roots)} records '<name>/data.pkl', and a checkpoint has one")
    if roots[0] + "constants.pkl" in archive.records:
        raise ScriptArchiveError("is a TorchScript archive, which holds code; load it with torch.jit.load")
    return roots[0]


def _byte_order(archive: ZipReader, root: str) -> str:
    if root + "byteorder" not in archive.records:
        return byte_order()
    order = archive.read(root + "byteorder", _SMALL_RECORD).strip()
    if order not in (b"little", b"big"):
        raise CheckpointError(f"declares the byte order {order!r}, and there are 'little' and 'big'")
    return order.decode()


def _check_version(archive: ZipReader, root: str) -> None:
    for name in ("version", ".data/version"):
        if root + name in archive.records:
            text = archive.read(root + name, _SMALL_RECORD).strip()
            if not text.isdigit() or not 1 <= int(text) <= _NEWEST_VERSION:
                raise CheckpointError(f"declares format version {text!r}, and 1 to {_NEWEST_VERSION} are understood")
