"""The on-disk cache of built libraries: content-hashed names, atomic renames, private to the user, bounded in size.

An entry is a source file `KEY.cpp` and the shared library `KEY.so` built from it. A library ends with a digest of its key and
content (a loader ignores bytes after an ELF file's sections), and is loaded only if that matches. If several processes need an
entry, one builds it and the others wait; without file locks they all build it, the last rename wins, and the results are equal.
A killed build leaves at most a temporary folder.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from rushlight.core.lazy_module import LazyModule

try:  # `hashlib` loads OpenSSL, which takes longer than reading and checking an entry
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

fcntl, shutil, tempfile = map(LazyModule, ("fcntl", "shutil", "tempfile"))
toolchain = LazyModule("rushlight.utils.native.toolchain")

T = TypeVar("T")

DEFAULT_LIMIT = 1 << 30  # bytes
STALE_SECONDS = 3600  # older temporary files belong to builds that were killed
WAIT_SECONDS = 120  # the maximal wait for another process that builds the same entry
_TEMPORARY = ".tmp-"
_LOCK = ".lock-"
_DIGEST_BYTES = 32
_refused: dict[Path, str] = {}  # the error of a folder in which nothing can be built; `setdefault` is atomic
_room: dict[tuple[Path, int], int] = {}  # by folder and limit: the bytes that this process may add before it trims again


class CacheUnusable(OSError):
    """A folder that compiled code must not be loaded from."""


def default_folder() -> Path:
    """Return `$RUSHLIGHT_CACHE_DIR`, or `rushlight` in the user's cache folder. CacheUnusable for a user without a home."""
    chosen = os.environ.get("RUSHLIGHT_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):
        raise CacheUnusable(
            f"the cache folder would be {base}/rushlight, which is no absolute path; set HOME or RUSHLIGHT_CACHE_DIR"
        )
    return Path(base) / "rushlight"


def size_limit() -> int:
    """Return `$RUSHLIGHT_CACHE_LIMIT`, or DEFAULT_LIMIT: the maximal bytes of entries. Warns about an invalid value."""
    given = os.environ.get("RUSHLIGHT_CACHE_LIMIT", "").strip()
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)(i?B)?", given, re.IGNORECASE)
    if found:
        return int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ")
    if given:
        warn_once(f"RUSHLIGHT_CACHE_LIMIT={given} is no number of bytes, such as 500000000, 500M or 1G: it is taken for 1G")
    return DEFAULT_LIMIT


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


def digest(*parts: str | bytes) -> str:
    """Return a hash of the content of `parts`."""
    joined = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        content = part.encode(errors="surrogatepass") if isinstance(part, str) else part  # a path may contain undecodable bytes
        joined.update(b"%d:" % len(content))
        joined.update(content)
    return joined.hexdigest()[:40]


@functools.cache
def version_of(library: str, folders: tuple[str, ...]) -> str:
    """Return a fingerprint of a library's version: the times and sizes of the files in some folders."""
    files: list[str] = []
    for folder in folders:
        _list_files(os.path.join(library, folder), files)
    return digest(*sorted(files))


def _list_files(folder: str, files: list[str]) -> None:
    for item in os.scandir(folder):
        if item.name.endswith((".py", ".h", ".txt")):
            status = item.stat()
            files.append(f"{item.path} {status.st_size} {status.st_mtime_ns}")
        elif "." not in item.name and item.name != "__pycache__" and item.is_dir():
            _list_files(item.path, files)


# Whole entries


def obtain(
    keys: tuple[str, ...], text: str, make: Callable[[Path, Path, Path], None], load: Callable[[Path], T]
) -> tuple[T, Path, bool]:
    """Return the result of `load` for a library, the library's path, and whether it was cached under one of `keys`.

    If it was not, `make(source, folder, output)` builds the source, a file that holds `text`, into `output`, with `folder` for
    its temporary files; it is kept under the first key. If the cache folder is unusable, a warning says so, and a temporary
    folder of the process replaces it from then on. BuildError when the second cannot be used either.
    """
    try:
        return _try_obtain(open_folder(default_folder()), keys, text, make, load)
    except OSError as error:
        warn_once(f"compile: compiled code is not kept, because {error}")
    try:
        return _try_obtain(process_folder(), keys, text, make, load)
    except OSError as error:
        raise toolchain.BuildError(f"compiled code can neither be kept nor loaded: {error}") from error


def find(keys: tuple[str, ...], load: Callable[[Path], T]) -> tuple[T, Path, bool] | None:
    """Return the result of `obtain` for a cached library; None if it is not cached."""
    try:
        return _load_intact(open_folder(default_folder()), keys, load)
    except OSError:
        return None


def _try_obtain(folder: Path, keys: tuple[str, ...], text: str, make: Callable, load: Callable) -> tuple:
    """Act as `_obtain`, but where building failed before, raise the first error again unless the library is there."""
    reason = _refused.get(folder)
    if reason is None:
        try:
            return _obtain(folder, keys, text, make, load)
        except OSError as error:
            raise CacheUnusable(_refused.setdefault(folder, str(error))) from error
    with contextlib.suppress(OSError):
        found = _load_intact(folder, keys, load)
        if found is not None:
            return found
    raise CacheUnusable(reason)


def _obtain(folder: Path, keys: tuple[str, ...], text: str, make: Callable, load: Callable) -> tuple:
    found = _load_intact(folder, keys, load)
    if found is not None:
        return found
    with _lock_entry(folder, keys[0]):
        found = _load_intact(folder, keys, load)
        if found is not None:
            return found
        source, library = folder / f"{keys[0]}.cpp", folder / f"{keys[0]}.so"
        write_atomically(source, text.encode())
        _build_into(library, functools.partial(make, source))
        loaded = load(library)
    _trim_when_full(folder, size_limit(), library)
    return loaded, library, False


def _load_intact(folder: Path, keys: tuple[str, ...], load: Callable) -> tuple | None:
    for key in keys:
        library = folder / f"{key}.so"
        if is_intact(library):
            with contextlib.suppress(FileNotFoundError):  # another process may have trimmed the cache meanwhile
                return load(library), library, True
    return None


@functools.cache
def process_folder() -> Path:
    """Return a temporary folder of this process; OSError where none can be made."""
    folder, owner = Path(tempfile.mkdtemp(prefix="rushlight-")), os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder


@functools.cache
def warn_once(message: str) -> None:
    """Issue a warning once."""
    warnings.warn(message, stacklevel=2)


# Files


def is_intact(library: Path) -> bool:
    """Return whether a built library exists, is undamaged, and was built under its name."""
    content = read(library)
    return content is not None


def read(library: Path) -> bytes | None:
    """Return the bytes of an intact library without its digest; else None."""
    try:
        data = library.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):  # a read-only cache still works
        os.utime(library)  # the least recently used entries are evicted first
    content = data[:-_DIGEST_BYTES]
    return content if _digest_of(library, content) == data[-_DIGEST_BYTES:] else None


def add(folder: Path, key: str, text: bytes, content: bytes) -> None:
    """Add an entry that was built elsewhere."""
    library = folder / f"{key}.so"
    write_atomically(folder / f"{key}.cpp", text)
    write_atomically(library, content + _digest_of(library, content))


def keep(path: Path, content: bytes) -> None:
    """Write a small file with a digest, for `read`; warns if it cannot be written."""
    if path.parent in _refused:
        return
    try:
        write_atomically(path, content + _digest_of(path, content))
    except OSError as error:
        reason = _refused.setdefault(path.parent, str(error))
        warn_once(f"compile: compiled code is not kept, because {reason}")


def _digest_of(library: Path, content: bytes) -> bytes:
    return blake2b(library.stem.encode() + b"\0" + content, digest_size=_DIGEST_BYTES).digest()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically: readers see all of it or nothing."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_TEMPORARY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _build_into(path: Path, make: Callable[[Path, Path], None]) -> None:
    """Have `make(folder, output)` write a library, add its digest, and rename it to `path`."""
    folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=_TEMPORARY))
    try:
        output = folder / "library.so"
        make(folder, output)
        if not output.is_file():
            raise toolchain.BuildError("the C++ compiler reported success and wrote no library")
        with open(output, "r+b") as file:
            file.write(_digest_of(path, file.read()))
        os.replace(output, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _lock_entry(folder: Path, key: str) -> Iterator[None]:
    """Lock an entry against other processes and threads, waiting at most WAIT_SECONDS.

    The lock ends with the process that holds it, so a kill releases it. Without file locks, nobody waits.
    """
    with open(folder / f"{_LOCK}{key[:2]}", "wb") as file:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)  # a process forked meanwhile has the file open, too


def _trim_when_full(folder: Path, limit: int, added: Path) -> None:
    """Trim the folder at this process's first entry in it, and again when it has filled a quarter of the remaining room.

    Scanning a large cache takes half as long as building an entry. The rest of the room is for other processes.
    """
    with contextlib.suppress(OSError):  # another process may have trimmed the cache meanwhile
        left = _room.get((folder, limit), 0) - added.stat().st_size
        _room[folder, limit] = left if left > 0 else trim(folder, limit) // 4


def trim(folder: Path, limit: int) -> int:
    """Delete leftovers of killed builds, and least recently used entries down to `limit` bytes. Return the bytes that may be
    added then.

    A process that has loaded a deleted library keeps it in memory; one about to load it builds it again.
    """
    entries = _entries(folder)
    total = sum(size for _, size in entries.values())
    for stem, (_, size) in sorted(entries.items(), key=lambda entry: entry[1]):
        if total <= limit:
            break
        for suffix in (".so", ".cpp", ".choice", ".plan", ".capture", ".code", ".headers", ".h.gch"):
            (folder / (stem + suffix)).unlink(missing_ok=True)
        total -= size
    return max(0, limit - total)


def _entries(folder: Path) -> dict[str, tuple[float, int]]:
    """Return the last use and the size of each entry. Deletes stale temporary files."""
    entries: dict[str, tuple[float, int]] = {}
    now = time.time()
    for item in os.scandir(folder):
        try:
            status = item.stat()
        except FileNotFoundError:
            continue
        if item.name.startswith(_TEMPORARY):
            if now - status.st_mtime > STALE_SECONDS:
                _remove(item)
        elif not item.name.startswith(_LOCK):
            stem = item.name.partition(".")[0]
            used, size = entries.get(stem, (0.0, 0))
            entries[stem] = (max(used, status.st_mtime), size + status.st_size)
    return entries


def _remove(item: os.DirEntry) -> None:
    if item.is_dir(follow_symlinks=False):
        shutil.rmtree(item.path, ignore_errors=True)
    else:
        Path(item.path).unlink(missing_ok=True)
