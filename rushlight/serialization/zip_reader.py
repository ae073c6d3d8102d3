"""ZipReader: the records of an uncompressed zip archive, with every declared size checked before memory is allocated.

In: a ByteSource. Out: a table of records and bounded, checksummed reads of them. The zip format is PKWARE's APPNOTE 6.3; only
the features that checkpoints use are accepted: one disk, no encryption, no bytes shared between records. Compressed records
(such as TorchScript's code) are listed, and refused when read.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np

from rushlight import _C
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.source import ByteSource

crc32 = _C.crc32 if _C.has_fast_crc32() else zlib.crc32
LOCAL_SIGNATURE = b"PK\x03\x04"
_CENTRAL_SIGNATURE = b"PK\x01\x02"
_END_SIGNATURE = b"PK\x05\x06"
_END64_SIGNATURE = b"PK\x06\x06"
_LOCATOR_SIGNATURE = b"PK\x06\x07"

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")

_ENCRYPTED, _SIZES_FOLLOW_DATA = 0x1, 0x8
_ZIP64_FIELD = 0x0001
_UNKNOWN_16, _UNKNOWN_32 = 0xFFFF, 0xFFFFFFFF
_MAX_COMMENT = 0xFFFF
_MAX_DIRECTORY = 256 << 20


class Record(NamedTuple):
    """The location of a record's bytes in the file, and their checksum. `method` is 0 for uncompressed ones."""

    name: str
    offset: int
    size: int
    checksum: int
    method: int


class ZipReader:
    """The archive in `source`. `records` maps names to records; CheckpointError for anything malformed."""

    def __init__(self, source: ByteSource):
        self.source = source
        count, offset, size = _find_directory(source)
        entries = _parse_directory(source.read_at(offset, size), count)
        located = [_locate(source, entry, offset) for entry in entries]
        _check_disjoint(located)
        self.records = _by_name(record for _, record in located)

    def read(self, name: str, limit: int) -> bytes:
        """Return the bytes of a record; CheckpointError when it is larger than `limit` or its checksum is wrong."""
        record = self.find(name)
        if record.size > limit:
            raise CheckpointError(f"record '{name}' has {record.size} bytes, and at most {limit} are accepted")
        data = self.source.read_at(record.offset, record.size)
        _check_checksum(record, data)
        return data

    def read_into(self, name: str, target: np.ndarray) -> None:
        """Fill `target` (uint8, as long as the record); CheckpointError when the checksum is wrong."""
        record = self.find(name)
        self.source.read_into(record.offset, target)
        _check_checksum(record, target)

    def find(self, name: str) -> Record:
        """Return the record called `name`; CheckpointError when there is none, or when it is compressed."""
        record = self.records.get(name)
        if record is None:
            raise CheckpointError(f"has no record '{name[:200]}'")
        if record.method != 0:
            raise CheckpointError(
                f"record '{name}' is compressed (zip method {record.method}); checkpoints store records uncompressed"
            )
        return record


def _check_checksum(record: Record, data: bytes | np.ndarray) -> None:
    """Raise CheckpointError for a wrong checksum. A checksum of 0 means that there is none."""
    if record.checksum and crc32(data) != record.checksum:
        raise CheckpointError(f"the checksum of record '{record.name}' does not match its bytes; the file is damaged")


def _find_directory(source: ByteSource) -> tuple[int, int, int]:
    """Return the number of entries of the central directory, its offset, and its size."""
    end, fields = _find_end(source)
    disk, directory_disk, count_here, count, size, offset, _ = fields
    if _has_locator(source, end):
        end, fields64 = _read_end64(source, end)
        disk, directory_disk, count_here, count, size, offset = _prefer_64_bit_fields(fields[:6], fields64)
    if disk or directory_disk or count_here != count:
        raise CheckpointError("is a zip archive split over several files")
    if offset + size != end:
        raise CheckpointError(
            f"the zip directory is declared at bytes {offset} to {offset + size} and does not end at byte {end}"
        )
    if size > _MAX_DIRECTORY:
        raise CheckpointError(f"the zip directory has {size} bytes, and at most {_MAX_DIRECTORY} are accepted")
    return count, offset, size


def _find_end(source: ByteSource) -> tuple[int, tuple[int, ...]]:
    # Find the end record: the last one whose comment ends exactly at the end of the file.
    length = min(source.size, _END.size + _MAX_COMMENT)
    tail = source.read_at(source.size - length, length)
    position = tail.rfind(_END_SIGNATURE)
    while position >= 0:
        if position + _END.size <= length:
            fields = _END.unpack_from(tail, position)[1:]
            if position + _END.size + fields[-1] == length:
                return source.size - length + position, fields
        position = tail.rfind(_END_SIGNATURE, 0, position)
    raise CheckpointError("begins as a zip archive but has no zip directory at its end; is it truncated?")


def _has_locator(source: ByteSource, end: int) -> bool:
    return end >= _LOCATOR.size and source.read_at(end - _LOCATOR.size, 4) == _LOCATOR_SIGNATURE


def _read_end64(source: ByteSource, end: int) -> tuple[int, tuple[int, ...]]:
    locator_offset = end - _LOCATOR.size
    _, disk, offset, disks = _LOCATOR.unpack(source.read_at(locator_offset, _LOCATOR.size))
    if disk or disks > 1:
        raise CheckpointError("is a zip archive split over several files")
    if offset + _END64.size > locator_offset:
        raise CheckpointError("the zip64 end record lies outside the file")
    signature, length, _, _, *fields = _END64.unpack(source.read_at(offset, _END64.size))
    if signature != _END64_SIGNATURE or offset + 12 + length != locator_offset:
        raise CheckpointError("the zip64 end record is malformed")
    return offset, tuple(fields)


def _prefer_64_bit_fields(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...]:
    limits = (_UNKNOWN_16,) * 4 + (_UNKNOWN_32,) * 2
    for narrow, wide, unknown in zip(small, large, limits, strict=True):
        if narrow not in (wide, unknown):
            raise CheckpointError("the zip end record and its zip64 counterpart contradict each other")
    return large


class _Entry(NamedTuple):
    name: str
    raw_name: bytes
    flags: int
    method: int
    checksum: int
    packed_size: int
    header_offset: int


def _parse_directory(directory: bytes, count: int) -> list[_Entry]:
    if count * _CENTRAL.size > len(directory):
        raise CheckpointError(f"the zip directory declares {count} records but has only {len(directory)} bytes")
    entries = []
    position = 0
    for _ in range(count):
        entry, position = _parse_entry(directory, position)
        if not (entry.name.endswith("/") and entry.packed_size == 0):
            entries.append(entry)
    if position != len(directory):
        raise CheckpointError(f"the zip directory has {len(directory) - position} bytes after its last record")
    return entries


def _parse_entry(directory: bytes, position: int) -> tuple[_Entry, int]:
    if position + _CENTRAL.size > len(directory):
        raise CheckpointError("the zip directory is truncated")
    header = _CENTRAL.unpack_from(directory, position)
    signature, _, _, flags, method, _, _, checksum, packed, size = header[:10]
    name_length, extra_length, comment_length, disk, _, _, offset = header[10:]
    if signature != _CENTRAL_SIGNATURE:
        raise CheckpointError(f"the zip directory is malformed at its byte {position}")
    name_end = position + _CENTRAL.size + name_length
    following = name_end + extra_length + comment_length
    if following > len(directory):
        raise CheckpointError("the zip directory is truncated")
    raw_name = directory[name_end - name_length : name_end]
    name = _check_name(raw_name)
    size, packed, offset = _replace_by_zip64(name, (size, packed, offset), directory[name_end : name_end + extra_length])
    _check_kind(name, flags, method, packed, size, disk)
    return _Entry(name, raw_name, flags, method, checksum, packed, offset), following


def _check_name(raw: bytes) -> str:
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise CheckpointError(f"a record's name is not UTF-8: {raw[:100]!r}") from None
    parts = name.removesuffix("/").split("/")
    if "\\" in name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise CheckpointError(f"a record has the unsafe name {name[:200]!r}")
    return name


def _replace_by_zip64(name: str, fields: tuple[int, ...], extra: bytes) -> list[int]:
    """Replace fields that do not fit in 32 bits by those of the zip64 extra field, which holds exactly these, in order."""
    wide = _zip64_values(name, extra) if _UNKNOWN_32 in fields else ()
    values = iter(wide)
    widened = [next(values, None) if field == _UNKNOWN_32 else field for field in fields]
    if None in widened:
        raise CheckpointError(f"record '{name}' lacks its 64-bit sizes")
    return widened


def _zip64_values(name: str, extra: bytes) -> tuple[int, ...]:
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, position)
        body = extra[position + 4 : position + 4 + length]
        if kind == _ZIP64_FIELD:
            return struct.unpack_from(f"<{len(body) // 8}Q", body)
        position += 4 + length
    raise CheckpointError(f"record '{name}' lacks its 64-bit sizes")


def _check_kind(name: str, flags: int, method: int, packed: int, size: int, disk: int) -> None:
    if flags & _ENCRYPTED:
        raise CheckpointError(f"record '{name}' is encrypted")
    if method == 0 and packed != size:
        raise CheckpointError(f"record '{name}' is uncompressed, and declares {packed} bytes for {size}")
    if disk not in (0, _UNKNOWN_16):
        raise CheckpointError("is a zip archive split over several files")


def _locate(source: ByteSource, entry: _Entry, directory_offset: int) -> tuple[int, Record]:
    """Return the offsets of an entry's local header and its data; header and directory must agree."""
    name = entry.name
    if entry.header_offset + _LOCAL.size > directory_offset:
        raise CheckpointError(f"record '{name}' is declared at byte {entry.header_offset}, outside of the records")
    header = _LOCAL.unpack(source.read_at(entry.header_offset, _LOCAL.size))
    signature, _, flags, method, _, _, _, packed, _, name_length, extra_length = header
    name_offset = entry.header_offset + _LOCAL.size
    data_offset = name_offset + name_length + extra_length
    if data_offset + entry.packed_size > directory_offset:
        raise CheckpointError(f"record '{name}' declares {entry.packed_size} bytes, more than lie behind its header")
    size_agrees = packed in (entry.packed_size, _UNKNOWN_32) or bool(flags & _SIZES_FOLLOW_DATA)
    name_agrees = name_length == len(entry.raw_name) and source.read_at(name_offset, name_length) == entry.raw_name
    kind_agrees = (signature, flags, method) == (LOCAL_SIGNATURE, entry.flags, entry.method)
    if not (size_agrees and name_agrees and kind_agrees):
        raise CheckpointError(f"the header of record '{name}' does not agree with the zip directory")
    return entry.header_offset, Record(name, data_offset, entry.packed_size, entry.checksum, entry.method)


def _check_disjoint(located: list[tuple[int, Record]]) -> None:
    previous_end, previous_name = 0, ""
    for header_offset, record in sorted(located):
        if header_offset < previous_end:
            raise CheckpointError(f"the records '{previous_name}' and '{record.name}' overlap")
        previous_end, previous_name = record.offset + record.size, record.name


def _by_name(records) -> dict[str, Record]:
    table: dict[str, Record] = {}
    for record in records:
        if record.name in table:
            raise CheckpointError(f"has two records called '{record.name}'")
        table[record.name] = record
    return table
