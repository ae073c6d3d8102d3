"""The container of a TorchScript archive: a zip file of records under one folder, some of which may be compressed.

In: a ByteSource. Out: bounded, checksummed reads of records by their names in the folder. Stage: jit, loading.
"""

from __future__ import annotations

import zlib

import numpy as np

from rushlight.core.storage import UntypedStorage
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.source import ByteSource
from rushlight.serialization.storages import StorageClaim, swap_bytes
from rushlight.serialization.zip_reader import LOCAL_SIGNATURE, Record, ZipReader

MAX_TEXT = 64 << 20
"""The most bytes of one file of code."""
_MAX_INFLATED = 256 << 20
_STORED, _DEFLATED = 0, 8
_SMALL_RECORD = 64
_NEWEST_VERSION = 10


class Archive(ZipReader):
    """The records of one archive. `root` is their folder, `version` the version of its operators, `order` its byte order.
    `is_first_format`: it has a model.json, as before torch 1.4. `kind` is the file kind in error messages."""

    kind = "TorchScript archive"

    def __init__(self, source: ByteSource):
        if source.size < len(LOCAL_SIGNATURE) or source.read_at(0, len(LOCAL_SIGNATURE)) != LOCAL_SIGNATURE:
            raise CheckpointError(f"does not begin as a zip archive, so it is no {self.kind}")
        super().__init__(source)
        self.inflated = 0
        self.root = self._find_root()
        self.version = self._find_version()
        self.order = self._find_order()

    def _find_root(self) -> str:
        described = [name.removesuffix("model.json") for name in self.records if name.endswith("/model.json")]
        self.is_first_format = len(described) == 1 and described[0].count("/") == 1
        if self.is_first_format:
            return described[0]
        folders = [name.removesuffix("data.pkl") for name in self.records if name.endswith("/data.pkl")]
        roots = [folder for folder in folders if folder.count("/") == 1]
        if len(roots) != 1:
            raise CheckpointError(f"has {len(roots)} records '<name>/data.pkl', and a TorchScript archive has one")
        if not any(name.startswith(f"{roots[0]}code/") for name in self.records):
            raise CheckpointError("has no code, so it is no TorchScript archive; is it a checkpoint for rushlight.load?")
        return roots[0]

    def _find_version(self) -> int:
        for name in ("version", ".data/version"):
            if self.has(name):
                text = self.text(name, _SMALL_RECORD).strip()
                if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= _NEWEST_VERSION:
                    raise CheckpointError(f"declares format version {text!r}, and 1 to {_NEWEST_VERSION} are understood")
                return int(text)
        raise CheckpointError("has no record 'version'")

    def _find_order(self) -> str:
        order = self.text("byteorder", _SMALL_RECORD).strip() if self.has("byteorder") else "little"
        if order not in ("little", "big"):
            raise CheckpointError(f"declares the byte order {order!r}, and there are 'little' and 'big'")
        return order

    def has(self, name: str) -> bool:
        """Return whether there is a record."""
        return self.root + name in self.records

    def names(self, prefix: str) -> list[str]:
        """Return the names of the records with this prefix, which is removed."""
        full = self.root + prefix
        return [name.removeprefix(full) for name in self.records if name.startswith(full)]

    def text(self, name: str, limit: int = MAX_TEXT) -> str:
        """Return a record as text; CheckpointError where it is not UTF-8."""
        try:
            return self.bytes(name, limit).decode()
        except UnicodeDecodeError:
            raise CheckpointError(f"record '{name}' is not UTF-8") from None

    def bytes(self, name: str, limit: int) -> bytes:
        """Return a record's bytes, inflated if necessary; CheckpointError for more than `limit` bytes."""
        record = self.records.get(self.root + name)
        if record is not None and record.method != _STORED:
            return self._inflate(record, limit)
        return self.read(self.root + name, limit)

    def _inflate(self, record: Record, limit: int) -> bytes:
        """Inflate a record. The limit also applies to the sum of all such records."""
        if record.method != _DEFLATED:
            raise CheckpointError(f"record '{record.name}' is compressed by an unknown method, {record.method}")
        limit = min(limit, _MAX_INFLATED - self.inflated)
        packed = self.source.read_at(record.offset, record.size)
        machine = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = machine.decompress(packed, limit + 1)
        except zlib.error as error:
            raise CheckpointError(f"record '{record.name}' cannot be unpacked: {error}") from None
        if len(data) > limit:
            raise CheckpointError(f"record '{record.name}' unpacks to more than {limit} bytes, which are accepted")
        if not machine.eof or zlib.crc32(data) != record.checksum:
            raise CheckpointError(f"the checksum of record '{record.name}' does not match its bytes; the file is damaged")
        self.inflated += len(data)
        return data

    def storage(self, folder: str, claim: StorageClaim, where: str) -> UntypedStorage:
        """Return the storage of a claim, from a record in a folder; its size must match the record's."""
        record = self.find(f"{self.root}{folder}/{claim.key}")
        if record.size != claim.nbytes:
            raise CheckpointError(
                f"storage '{claim.key}' is declared with {claim.nbytes} bytes, and its record has {record.size}"
            )
        if where == "meta":
            return UntypedStorage(record.size, device="meta")
        storage = UntypedStorage(record.size)
        if record.size:
            array: np.ndarray = storage.numpy()
            self.read_into(record.name, array)
        swap_bytes(storage, claim.element_type, self.order)
        return storage
