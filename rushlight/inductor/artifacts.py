"""Artifacts: built libraries packed into one file for another machine.

In: the libraries that this process built or loaded. Out: bytes, and the way back into another process's cache. Each library
carries the hash of its content and the list of processor instructions that it may use.

Trust: the bytes hold native code, which runs when a program that needs it is compiled. Load them only from where you would
install software from. Damaged, truncated or forged bytes are refused as a whole. Nothing in them chooses a path, and no more
bytes are loaded than the cache's size limit.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from rushlight.inductor.build import headers_digest, local_key, used_libraries
from rushlight.inductor.processor import instructions, machine
from rushlight.utils.native import cache

_MAGIC = b"RLARTIFACT1\n"
_LENGTH = struct.Struct("<Q")
_HASH_BYTES = hashlib.sha256().digest_size
_MOST_ENTRIES = 100_000
MAX_HEADER_BYTES = 64 << 20  # bytes
_KEY = re.compile(r"[0-9a-f]{40}")


class ArtifactError(ValueError):
    """The bytes are no artifacts, or damaged."""


@dataclass(frozen=True)
class CacheInfo:
    """The names of saved or loaded artifacts, by kind."""

    artifacts: dict[str, list[str]] = field(default_factory=dict)

    @property
    def inductor_artifacts(self) -> list[str]:
        """The names of compiled programs."""
        return self.artifacts.get("inductor", [])

    def empty(self) -> bool:
        """Return whether there are no artifacts."""
        return not any(self.artifacts.values())


def save_cache_artifacts() -> tuple[bytes, CacheInfo] | None:
    """Pack all programs that this process compiled or loaded; returns the bytes and the names, or None if there are none.

    Programs that were evicted from the cache are left out.
    """
    entries, blobs = [], []
    for key, library in sorted(used_libraries().items()):
        content, text = cache.read(library), _read_source(library)
        if content is None or text is None:
            continue
        entries.append({"key": key, "library": len(content), "text": len(text), "hash": _hash(content + text)})
        blobs += [content, text]
    if not entries:
        return None
    header = {"machine": machine(), "headers": headers_digest(), "instructions": list(instructions()), "entries": entries}
    encoded = json.dumps(header).encode()
    body = b"".join([_MAGIC, _LENGTH.pack(len(encoded)), encoded, *blobs])
    return body + hashlib.sha256(body).digest(), CacheInfo({"inductor": [entry["key"] for entry in entries]})


def load_cache_artifacts(serialized_artifacts: bytes) -> CacheInfo | None:
    """Unpack the result of `save_cache_artifacts` into this user's cache; returns the names.

    Returns None, after a warning, if the bytes are damaged, or were made for another machine type, for a processor with
    instructions that this one lacks, or by another version of Rushlight; programs then compile as usual. TypeError for anything
    but bytes.
    """
    if not isinstance(serialized_artifacts, bytes | bytearray | memoryview):
        raise TypeError(f"load_cache_artifacts expects bytes, got {type(serialized_artifacts).__name__}")
    data = bytes(serialized_artifacts)
    try:
        header, start = _read_header(data)
        _check_machine(header)
        found = _read_entries(header, data, start)
        folder = cache.open_folder(cache.default_folder())
        for key, content, text in found:
            cache.add(folder, local_key(key), text, content)
        cache.trim(folder, cache.size_limit())
    except (ArtifactError, OSError) as error:
        warnings.warn(f"load_cache_artifacts: nothing was loaded, because {error}", stacklevel=2)
        return None
    return CacheInfo({"inductor": [key for key, _, _ in found]})


def _read_header(data: bytes) -> tuple[dict, int]:
    """Return the header and the offset of the content, after checking the hash of all bytes."""
    fixed = len(_MAGIC) + _LENGTH.size
    if not data.startswith(_MAGIC) or len(data) < fixed + _HASH_BYTES:
        raise ArtifactError("the bytes were not made by save_cache_artifacts of this version")
    if hashlib.sha256(memoryview(data)[:-_HASH_BYTES]).digest() != data[-_HASH_BYTES:]:
        raise ArtifactError("the bytes are damaged: their hash does not fit")
    (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
    if length > min(MAX_HEADER_BYTES, len(data) - fixed - _HASH_BYTES):
        raise ArtifactError("the bytes are damaged: the header is longer than they are")
    try:
        header = json.loads(data[fixed : fixed + length])
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"the header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise ArtifactError("the header is no table")
    return header, fixed + length


def _check_machine(header: dict) -> None:
    if header.get("machine") != machine():
        raise ArtifactError(f"they were made for {header.get('machine')!r}, and this is {machine()!r}")
    if header.get("headers") != headers_digest():
        raise ArtifactError("they were made by another version of Rushlight")
    used = header.get("instructions")
    if not isinstance(used, list) or not all(isinstance(name, str) for name in used):
        raise ArtifactError("the header does not say which instructions they use")
    missing = sorted(set(used) - set(instructions()))
    if missing:
        raise ArtifactError(f"they may use instructions that this processor lacks: {', '.join(missing)[:200]}")


def _read_entries(header: dict, data: bytes, start: int) -> list[tuple[str, bytes, bytes]]:
    """Return each entry's key, library and C++ text."""
    entries = header.get("entries")
    if not isinstance(entries, list) or len(entries) > _MOST_ENTRIES:
        raise ArtifactError("the header has no sound list of entries")
    end, found = len(data) - _HASH_BYTES, []
    if end - start > cache.size_limit():
        raise ArtifactError(f"they are larger than the cache may be ({cache.size_limit()} bytes, RUSHLIGHT_CACHE_LIMIT)")
    for entry in entries:
        key, sizes, expected = _check_entry(entry)
        if sum(sizes) > end - start:
            raise ArtifactError("an entry is longer than the bytes")
        content, text = data[start : start + sizes[0]], data[start + sizes[0] : start + sum(sizes)]
        if _hash(content + text) != expected:
            raise ArtifactError(f"the hash of {key} does not fit its content")
        start += sum(sizes)
        found.append((key, content, text))
    return found


def _check_entry(entry: object) -> tuple[str, tuple[int, int], str]:
    if isinstance(entry, dict):
        key, sizes, expected = entry.get("key"), (entry.get("library"), entry.get("text")), entry.get("hash")
        sound = all(type(size) is int and 0 <= size for size in sizes)
        if isinstance(key, str) and _KEY.fullmatch(key) and sound and isinstance(expected, str):
            return key, sizes, expected
    raise ArtifactError("the header describes an entry that cannot be")


def _read_source(library: Path) -> bytes | None:
    try:
        return library.with_suffix(".cpp").read_bytes()
    except OSError:
        return None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
