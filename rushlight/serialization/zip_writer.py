"""ZipWriter: an uncompressed zip archive whose records begin at multiples of 64 bytes, so that storages can be mapped.

In: records, one after another. Out: the archive on a binary stream, which need not be able to seek.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from typing import BinaryIO

_ALIGNMENT = 64
_LOCAL_HEADER = 30
_ZIP64_HEADER = 20
_PADDING_FIELD = b"FB"
_PART = 1 << 20
_MIN_DATE = (1980, 1, 1, 0, 0, 0)


class _WriteOnly:
    """A stream without positions: zipfile then counts from the archive's start and never seeks back."""

    def __init__(self, stream: BinaryIO):
        self.write = stream.write
        self.flush = getattr(stream, "flush", lambda: None)


class ZipWriter:
    """Writes records under `root`. Times are fixed, so the same records give the same bytes."""

    def __init__(self, stream: BinaryIO, root: str, has_checksums: bool = True):
        self.has_checksums = has_checksums
        self.archive = zipfile.ZipFile(_WriteOnly(stream), "w", zipfile.ZIP_STORED, allowZip64=True)
        self.root = root

    def write(self, name: str, data: bytes | memoryview) -> None:
        """Append a record."""
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        self._write_parts(name, view.nbytes, [view])

    def write_zeros(self, name: str, length: int) -> None:
        """Append a record of zeros."""
        zeros = memoryview(bytes(min(length, _PART)))
        self._write_parts(name, length, (zeros[: length - start] for start in range(0, length, _PART)))

    def _write_parts(self, name: str, length: int, parts: Iterable[memoryview]) -> None:
        info = zipfile.ZipInfo(f"{self.root}/{name}", _MIN_DATE)
        info.file_size = length
        wide = length * 1.05 > zipfile.ZIP64_LIMIT
        info.extra = self._padding(len(info.filename.encode()) + (_ZIP64_HEADER if wide else 0))
        with self.archive.open(info, "w", force_zip64=wide) as record:
            for part in parts:
                if self.has_checksums:
                    record.write(part)
                else:  # `data` is a callable that writes to the stream: its bytes are neither checksummed nor counted
                    self.archive.fp.write(part)
            if not self.has_checksums:
                record._file_size = length

    def fingerprint(self) -> tuple[int, int]:
        """Return checksums of the names and of the contents written so far."""
        records = self.archive.infolist()
        contents = b"".join(record.CRC.to_bytes(4, "little") for record in records)
        return zlib.crc32("\n".join(record.filename for record in records).encode()), zlib.crc32(contents)

    def close(self) -> None:
        """Write the directory."""
        self.archive.close()

    def _padding(self, name_length: int) -> bytes:
        # Pad with an extra field, which readers skip, so that the data is aligned.
        start = self.archive.fp.tell() + _LOCAL_HEADER + name_length + 4
        length = -start % _ALIGNMENT
        return _PADDING_FIELD + length.to_bytes(2, "little") + b"Z" * length
