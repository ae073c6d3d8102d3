"""`load`: a checkpoint file to the object in it. The entry of this package's reading half."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from rushlight.serialization.errors import CheckpointError, UnpicklingError
from rushlight.serialization.legacy_format import load_legacy
from rushlight.serialization.source import ByteSource
from rushlight.serialization.storages import MapLocation
from rushlight.serialization.zip_format import load_zip
from rushlight.serialization.zip_reader import LOCAL_SIGNATURE


def load(
    f: str | os.PathLike | BinaryIO,
    map_location: MapLocation = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
) -> Any:
    """Read an object that `torch.save` or `rushlight.save` wrote, in the zip format or the one from before torch 1.6.

    `f` is a path or a binary file that can seek. `map_location` is where storages go: a device, a dict from saved to
    wanted device strings, or a function (storage, location) -> storage or None. With `mmap=True`, which needs a path
    and the zip format, storages are pages of the file, copied when written to.

    Only weights are read, also with `weights_only=False`: tensors, parameters, plain containers, numbers, strings,
    dtypes, devices and sizes. Nothing in the file is executed. Raises UnpicklingError for a file that holds anything
    else and RuntimeError for one that is truncated, damaged, or no checkpoint; both name the file.
    """
    source = ByteSource(f)
    try:
        return _load(source, map_location, bool(mmap))
    except (CheckpointError, UnpicklingError) as error:
        raise type(error)(f"{source.name}: {error}{_note(error, weights_only)}") from error
    finally:
        source.close()


def _load(source: ByteSource, map_location: MapLocation, mapped: bool) -> Any:
    if not source.size:
        raise CheckpointError("is empty")
    if source.read_at(0, min(4, source.size)) == LOCAL_SIGNATURE:
        return load_zip(source, map_location, mapped)
    if mapped:
        raise CheckpointError("is not a zip checkpoint, and only those can be mapped; load it without mmap=True")
    return load_legacy(source, map_location)


def _note(error: Exception, weights_only: bool) -> str:
    if weights_only or not isinstance(error, UnpicklingError):
        return ""
    return ". weights_only=False makes no difference: rushlight loads only weights and never runs code from a file"
