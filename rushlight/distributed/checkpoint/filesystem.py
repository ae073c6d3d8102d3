"""Files of checkpoints: written under names of their own, and made the checkpoint by one replacement of `.metadata`.

A reader sees the last whole checkpoint, whatever moment a writer was interrupted at.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rushlight.distributed.checkpoint.metadata import CheckpointException, Metadata, Place

METADATA = ".metadata"
SUFFIX = ".distcp"


class FileSystemWriter:
    """Writes checkpoints to a folder that all ranks see."""

    def __init__(self, path: str | os.PathLike, **options: Any) -> None:
        if options:
            raise TypeError(f"FileSystemWriter takes a path only, got {', '.join(options)}")
        self.path = Path(path)

    def open(self, name: str) -> DataFile:
        """Return a new file for one rank's bytes."""
        self.path.mkdir(parents=True, exist_ok=True)
        return DataFile(self.path / name)

    def commit(self, metadata: Metadata) -> None:
        """Make what was written the checkpoint, then delete files of earlier ones."""
        temporary = self.path / f"{METADATA}.tmp"
        with temporary.open("w") as file:
            file.write(metadata.to_json())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path / METADATA)
        _sync_folder(self.path)
        kept = metadata.files()
        for file in self.path.glob(f"*{SUFFIX}"):
            if file.name not in kept:
                file.unlink(missing_ok=True)


class DataFile:
    """A file of one rank, written from begin to end."""

    def __init__(self, path: Path) -> None:
        self.path, self._file, self._offset = path, path.open("wb"), 0

    def add(self, data: bytes | memoryview) -> Place:
        """Append bytes; return where they are."""
        place = Place(self.path.name, self._offset, len(data))
        self._file.write(data)
        self._offset += place.nbytes
        return place

    def close(self) -> None:
        """Have the bytes on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def _sync_folder(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class FileSystemReader:
    """Reads checkpoints from a folder."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)

    def read_metadata(self) -> Metadata:
        """Return what the checkpoint has. CheckpointException where none is whole, or files are missing or cut off."""
        try:
            text = (self.path / METADATA).read_text()
        except FileNotFoundError as error:
            raise CheckpointException(
                f"{self.path} has no whole checkpoint: there is no {METADATA}, which is written last"
            ) from error
        metadata = Metadata.from_json(text)
        for name, size in metadata.files().items():
            if os.path.basename(name) != name:
                raise CheckpointException(f"{self.path}: the checkpoint names a file outside of its folder: {name!r}")
            path = self.path / name
            have = path.stat().st_size if path.exists() else None
            if have is None or have < size:
                raise CheckpointException(
                    f"{path} " + ("is missing" if have is None else f"was cut off: {have} of {size} bytes")
                )
        return metadata

    def read(self, place: Place) -> bytearray:
        """Return bytes."""
        with (self.path / place.file).open("rb") as file:
            file.seek(place.offset)
            return bytearray(file.read(place.nbytes))
