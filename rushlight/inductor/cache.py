"""The on-disk cache of built programs: content-hashed names, written by atomic rename, private to the user.

An entry is a source file and the shared library built from it. Processes may build the same entry at once; the last
rename wins and both results are equal.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def default_folder() -> Path:
    """`$RUSHLIGHT_CACHE_DIR`, or `rushlight` in the user's cache folder."""
    chosen = os.environ.get("RUSHLIGHT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "rushlight"


def open_folder(folder: Path) -> Path:
    """Make the folder if needed, for this user alone.

    RuntimeError when it belongs to another user or others may write to it: code is loaded from it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise RuntimeError(
            f"the cache folder {folder} must belong to you and be writable by you alone (chmod go-w), since compiled code "
            "is loaded from it; or set RUSHLIGHT_CACHE_DIR to another folder"
        )
    return folder


def digest(*parts: str) -> str:
    """A name for the content of `parts`."""
    joined = hashlib.sha256()
    for part in parts:
        joined.update(part.encode())
        joined.update(b"\0")
    return joined.hexdigest()[:40]


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that readers see all of it or nothing."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def build_into(path: Path, build: Callable[[str], None]) -> None:
    """Have `build(temporary)` write a file and rename it to `path`."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tmp-", suffix=".so")
    os.close(handle)
    try:
        build(temporary)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
