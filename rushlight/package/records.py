"""The container of a package: a zip file of records under one folder, or that folder itself, unpacked.

In: a path or a binary file. Out: checked reads of records by their names in the folder. CheckpointError: it is malformed.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import BinaryIO

from rushlight.core.storage import UntypedStorage
from rushlight.jit.serialization.archive import MAX_TEXT, Archive
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.source import ByteSource
from rushlight.serialization.storages import StorageClaim, swap_bytes

HIDDEN = ".data"
"""The folder of internal records: storages, code of scripted modules, the list of external modules."""
EXTERN_MODULES, PYTHON_VERSION = f"{HIDDEN}/extern_modules", f"{HIDDEN}/python_version"
_SMALL_RECORD = 64


class PackageArchive(Archive):
    """The records of a package in a zip file."""

    kind = "package"

    def __init__(self, source: ByteSource):
        self._reading = threading.RLock()  # one read at a time: all threads share the file's position
        super().__init__(source)

    def bytes(self, name: str, limit: int) -> bytes:
        """Return a record's bytes, inflated if necessary; CheckpointError for more than `limit` bytes."""
        with self._reading:
            return super().bytes(name, limit)

    def storage(self, folder: str, claim: StorageClaim, where: str) -> UntypedStorage:
        """Return the storage of a claim, from a record in a folder; its size must match the record's."""
        with self._reading:
            return super().storage(folder, claim, where)

    def _find_root(self) -> str:
        self.is_first_format = False
        roots = {name.partition("/")[0] for name in self.records}
        if len(roots) != 1:
            raise CheckpointError(f"has {len(roots)} folders at its top, and a package has one, in which all files lie")
        root = f"{roots.pop()}/"
        if root + EXTERN_MODULES not in self.records:
            raise CheckpointError(f"failed locating file {EXTERN_MODULES}: file not found; is it a package?")
        return root

    def content(self, name: str) -> bytes:
        """Return all bytes of a record, as many as there are."""
        if not self.has(name):
            raise CheckpointError(f"failed locating file {name}: file not found")
        return self.bytes(name, max(self.source.size, MAX_TEXT))

    def close(self) -> None:
        """Do nothing: no file is open between reads."""
        self.source.close()


class PackageFolder:
    """The same records as the files of a folder. Links, and paths that leave the folder, are not followed."""

    version, order = 6, "little"

    def __init__(self, path: str):
        self.path = Path(path)
        self.files = sorted(_files(path))
        if EXTERN_MODULES not in self.files:
            raise CheckpointError(f"failed locating file {EXTERN_MODULES}: file not found; is it the folder of a package?")
        if "byteorder" in self.files:
            self.order = self.text("byteorder", _SMALL_RECORD).strip()
        if self.order not in ("little", "big"):
            raise CheckpointError(f"declares the byte order {self.order!r}, and there are 'little' and 'big'")

    def has(self, name: str) -> bool:
        """Return whether there is a record."""
        return name in self.files

    def names(self, prefix: str) -> list[str]:
        """Return the names of the records that begin with a prefix, without it."""
        return [name.removeprefix(prefix) for name in self.files if name.startswith(prefix)]

    def content(self, name: str) -> bytes:
        """Return all bytes of a record."""
        if name not in self.files:
            raise CheckpointError(f"failed locating file {name}: file not found")
        return (self.path / name).read_bytes()

    def bytes(self, name: str, limit: int) -> bytes:
        """Return a record's bytes; CheckpointError where there are more than `limit`."""
        if name in self.files and (self.path / name).stat().st_size > limit:
            raise CheckpointError(f"record '{name}' has more than {limit} bytes, which are accepted")
        return self.content(name)

    def text(self, name: str, limit: int = MAX_TEXT) -> str:
        """Return a record as text; CheckpointError where it is not UTF-8."""
        try:
            return self.bytes(name, limit).decode()
        except UnicodeDecodeError:
            raise CheckpointError(f"record '{name}' is not UTF-8") from None

    def storage(self, folder: str, claim: StorageClaim, where: str) -> UntypedStorage:
        """Return the storage of a claim, from a file in a folder; its size must be the file's."""
        data = self.content(f"{folder}/{claim.key}")
        if len(data) != claim.nbytes:
            raise CheckpointError(
                f"storage '{claim.key}' is declared with {claim.nbytes} bytes, and its record has {len(data)}"
            )
        if where == "meta":
            return UntypedStorage(len(data), device="meta")
        storage = UntypedStorage.from_buffer(data)
        swap_bytes(storage, claim.element_type, self.order)
        return storage

    def close(self) -> None:
        """Nothing is open between reads."""


Records = PackageArchive | PackageFolder


def open_records(file: str | os.PathLike | BinaryIO) -> tuple[Records, str]:
    """Return the records of a package, and what errors call it: its path, or `<binary>`."""
    is_path = isinstance(file, str | os.PathLike)
    name = os.fspath(file) if is_path else "<binary>"
    if is_path and os.path.isdir(file):
        return PackageFolder(name), name
    source = ByteSource(file)
    try:
        return PackageArchive(source), name
    except CheckpointError as error:
        source.close()
        raise CheckpointError(f"'{name}': {error}") from None


def _files(path: str) -> list[str]:
    """Return the paths in a folder of its regular files."""
    found = []
    for folder, _, names in os.walk(path):
        for name in names:
            file = os.path.join(folder, name)
            if not os.path.islink(file) and os.path.isfile(file):
                found.append(os.path.relpath(file, path).replace(os.sep, "/"))
    return found
