"""The on-disk cache of built programs: content-hashed names, atomic renames, private to the user, bounded in size.

An entry is a source file `KEY.cpp` and the shared library `KEY.so` built from it. A library ends with a digest of what
precedes it (a loader ignores what follows an ELF file's sections), and is loaded only when that fits. Processes may build
the same entry at once: the last rename wins and both results are equal. A killed build leaves at most a temporary file.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

DEFAULT_LIMIT = 1 << 30  # bytes
STALE_SECONDS = 3600  # temporary files this old belong to builds that were killed
_TEMPORARY = ".tmp-"
_DIGEST_BYTES = hashlib.sha256().digest_size


class CacheUnusable(OSError):
    """A folder that compiled code must not be loaded from."""


def default_folder() -> Path:
    """`$RUSHLIGHT_CACHE_DIR`, or `rushlight` in the user's cache folder."""
    chosen = os.environ.get("RUSHLIGHT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "rushlight"


def size_limit() -> int:
    """`$RUSHLIGHT_CACHE_LIMIT`, or DEFAULT_LIMIT: how many bytes of entries are kept."""
    given = os.environ.get("RUSHLIGHT_CACHE_LIMIT", "")
    return int(given) if given.isdigit() else DEFAULT_LIMIT


def open_folder(folder: Path) -> Path:
    """Make the folder if needed, for this user alone.

    CacheUnusable when it belongs to another user or others may write to it, since code is loaded from it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise CacheUnusable(
            f"the cache folder {folder} must belong to you and be writable by you alone (chmod go-w), since compiled "
            "code is loaded from it; or set RUSHLIGHT_CACHE_DIR to another folder"
        )
    return folder


def digest(*parts: str) -> str:
    """A name for the content of `parts`."""
    joined = hashlib.sha256()
    for part in parts:
        joined.update(part.encode())
        joined.update(b"\0")
    return joined.hexdigest()[:40]


def is_intact(library: Path) -> bool:
    """Whether a built library is there, and is what was written."""
    try:
        data = library.read_bytes()
        os.utime(library)  # the least recently used entries are the first to go
    except OSError:
        return False
    content = memoryview(data)[:-_DIGEST_BYTES]
    return hashlib.sha256(content).digest() == data[-_DIGEST_BYTES:]


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that readers see all of it or nothing."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_TEMPORARY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def build_into(path: Path, build: Callable[[str], None]) -> None:
    """Have `build(temporary)` write a library, add its digest, and rename it to `path`."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_TEMPORARY, suffix=".so")
    os.close(handle)
    try:
        build(temporary)
        with open(temporary, "r+b") as file:
            content = file.read()
            file.write(hashlib.sha256(content).digest())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def trim(folder: Path, limit: int) -> None:
    """Delete what killed builds left, and the entries that were not used for longest until `limit` bytes are left.

    A library that another process has loaded stays in its memory; one that is about to load it builds it again.
    """
    entries = _entries(folder)
    total = sum(size for _, size in entries.values())
    for stem, (_, size) in sorted(entries.items(), key=lambda entry: entry[1]):
        if total <= limit:
            break
        for suffix in (".so", ".cpp"):
            (folder / (stem + suffix)).unlink(missing_ok=True)
        total -= size


def _entries(folder: Path) -> dict[str, tuple[float, int]]:
    """When each entry was last used, and its size. Stale temporary files are deleted on the way."""
    entries: dict[str, tuple[float, int]] = {}
    now = time.time()
    for item in os.scandir(folder):
        try:
            status = item.stat()
        except FileNotFoundError:
            continue
        if not item.name.startswith(_TEMPORARY):
            stem = item.name.partition(".")[0]
            used, size = entries.get(stem, (0.0, 0))
            entries[stem] = (max(used, status.st_mtime), size + status.st_size)
        elif now - status.st_mtime > STALE_SECONDS:
            Path(item.path).unlink(missing_ok=True)
    return entries
