"""Defaults of `save` and `load`: byte order, mapping of files, checksums, files without data."""

from __future__ import annotations

import enum
import mmap
import sys
import threading

__all__ = [
    "LoadEndianness", "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options", "set_crc32_options",
    "set_default_load_endianness", "set_default_mmap_options", "skip_data",
]  # fmt: skip


class LoadEndianness(enum.Enum):
    """The byte order of files that do not record theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options(threading.local):
    endianness: LoadEndianness | None = None
    mapping = mmap.MAP_PRIVATE
    has_checksums = True
    skips_data = False
    materializes_fakes = False


_options = _Options()


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order of files that do not record theirs; None, the default, is little-endian."""
    return _options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set it for this thread. TypeError for anything but a `LoadEndianness` or None."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _options.endianness = endianness


def byte_order() -> str:
    """Return the value of `get_default_load_endianness` as "little" or "big"."""
    return {LoadEndianness.NATIVE: sys.byteorder, LoadEndianness.BIG: "big"}.get(_options.endianness, "little")


def get_default_mmap_options() -> int:
    """Return the flags of `load(mmap=True)`: `mmap.MAP_PRIVATE`, so that writes stay in memory, or `mmap.MAP_SHARED`."""
    return _options.mapping


class set_default_mmap_options:  # noqa: N801 - the name that torch users know
    """Make `load(mmap=True)` map files with `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED` in this thread.

    With MAP_SHARED, writes to loaded tensors change the file, which must be writable. As a context manager it applies to the
    block. ValueError for other flags.

    >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     weights = torch.load("weights.pt", mmap=True)
    """

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got "
                f"{flags}"
            )
        self._before, _options.mapping = _options.mapping, flags

    def __enter__(self) -> None:
        """Do nothing: the flags were set by the call."""

    def __exit__(self, *error: object) -> None:
        _options.mapping = self._before


def get_crc32_options() -> bool:
    """Return whether `save` writes checksums of the records, as by default."""
    return _options.has_checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Make `save` write checksums, or zeros instead, in this thread.

    `load` reads both; other zip programs reject a file without checksums.
    """
    _options.has_checksums = bool(compute_crc32)


class skip_data:  # noqa: N801 - the name that torch users know
    """A block in which `save` writes zeros for the bytes of storages, and `load` leaves them zero.

    Such a file has its final size, so that its storages can be filled in later. With `materialize_fake_tensors`, tensors of a
    `FakeTensorMode` are written like real ones.

    >>> with torch.serialization.skip_data():
    ...     torch.save(model.state_dict(), "weights.pt")
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = _options.skips_data, _options.materializes_fakes
        _options.skips_data, _options.materializes_fakes = True, self.materialize_fake_tensors

    def __exit__(self, *error: object) -> None:
        _options.skips_data, _options.materializes_fakes = self._before


def skips_data() -> bool:
    """Return whether `skip_data` is in effect."""
    return _options.skips_data


def materializes_fakes() -> bool:
    """Return whether `skip_data(materialize_fake_tensors=True)` is."""
    return _options.materializes_fakes
