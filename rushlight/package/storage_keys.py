"""StorageKeys: the storages of a package, which all its pickles share; each is one record `.data/<key>.storage`.

In: the storages that picklers meet. Out: their keys, and those that are still to be written.
"""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.core.dtype import dtype
from rushlight.core.storage import StorageImpl
from rushlight.package.records import HIDDEN
from rushlight.serialization.pickler import Pickler


class StorageKeys:
    """The table of one package."""

    def __init__(self) -> None:
        self._storages: list[StorageImpl] = []
        self._keys: dict[int, tuple[str, dtype | None]] = {}
        self._written = 0

    def share(self, pickler: Pickler) -> None:
        """Make a pickler number its storages in this table."""
        pickler.storages, pickler.storage_keys = self._storages, self._keys

    def unwritten(self) -> Iterator[tuple[str, memoryview]]:
        """Yield the records of the storages added since the last call."""
        while self._written < len(self._storages):
            key, storage = self._written, self._storages[self._written]
            self._written += 1
            yield f"{HIDDEN}/{key}.storage", storage.bytes().data
