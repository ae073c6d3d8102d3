"""ByteSource: random access to the bytes of a checkpoint, given as a path or as an open file.

In: the argument of `load`. Out: bounded reads, each checked against the size, for the zip and legacy readers.
"""

from __future__ import annotations

import io
import mmap
import os
from typing import BinaryIO

import numpy as np

from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.options import get_default_mmap_options


class ByteSource:
    """Reads of a binary file from its position at opening. Offsets count from there; `size` is the number of bytes that follow.

    A path is opened here and closed by `close`; a file object stays the caller's. TypeError for anything else,
    ValueError for a file that cannot seek.
    """

    def __init__(self, file: str | os.PathLike | BinaryIO):
        self.is_path = isinstance(file, str | os.PathLike)
        self.name = f"'{os.fspath(file)}'" if self.is_path else _describe(file)
        self.file = open(file, "rb") if self.is_path else _check_file(file)
        self.start = self.file.tell()
        self.size = max(self.file.seek(0, io.SEEK_END) - self.start, 0)

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self.is_path:
            self.file.close()

    def read_at(self, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes from `offset`; CheckpointError when the file does not hold them."""
        self._check_range(offset, length)
        self.file.seek(self.start + offset)
        data = self.file.read(length)
        if len(data) != length:
            raise CheckpointError(f"could read only {len(data)} of {length} bytes at offset {offset}")
        return data

    def read_into(self, offset: int, target: np.ndarray) -> None:
        """Fill `target`, an array of uint8, from `offset` on; CheckpointError when the file does not hold as much."""
        self._check_range(offset, target.nbytes)
        self.file.seek(self.start + offset)
        done = 0
        view = memoryview(target)
        while done < target.nbytes:
            count = self._fill(view[done:])
            if not count:
                raise CheckpointError(f"could read only {done} of {target.nbytes} bytes at offset {offset}")
            done += count

    def _fill(self, view: memoryview) -> int:
        if hasattr(self.file, "readinto"):
            return self.file.readinto(view) or 0
        data = self.file.read(len(view))
        view[: len(data)] = data
        return len(data)

    def map(self) -> mmap.mmap:
        """Return the file mapped into memory, by this thread's options; ValueError unless it was given as a path."""
        if not self.is_path:
            raise ValueError("mmap=True needs a path, so that the file can be mapped; open files are read instead")
        if get_default_mmap_options() == mmap.MAP_PRIVATE:
            return mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_COPY)
        with open(self.file.name, "r+b") as writable:
            return mmap.mmap(writable.fileno(), 0, access=mmap.ACCESS_WRITE)

    def _check_range(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size:
            raise CheckpointError(f"needs bytes {offset} to {offset + length} of a file of {self.size}; truncated?")


def _describe(file: object) -> str:
    name = getattr(file, "name", None)
    return f"'{name}'" if isinstance(name, str) else f"<{type(file).__name__}>"


def _check_file(file: object) -> BinaryIO:
    missing = [method for method in ("read", "readline", "seek", "tell") if not hasattr(file, method)]
    if "read" in missing:
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'read' attribute, but got {type(file).__name__}; "
            "wrap bytes in io.BytesIO"
        )
    if missing:
        raise AttributeError(
            f"{type(file).__name__} has no {', '.join(missing)}. You can only torch.load from a file that is seekable. Please "
            "pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        )
    if isinstance(file, io.TextIOBase):
        raise TypeError("expected a file opened in binary mode, but got a text file; open it with mode 'rb'")
    if hasattr(file, "seekable") and not file.seekable():
        raise ValueError("expected a file that can seek; read it into io.BytesIO first")
    return file
