"""What a checkpoint names, without reading it."""

from __future__ import annotations

import os
import pickle
import pickletools
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from rushlight.serialization.allowlist import find_global
from rushlight.serialization.errors import UnpicklingError
from rushlight.serialization.trust import trusted_globals


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike | BinaryIO) -> list[str]:
    """The classes and functions that a checkpoint names and that `load` refuses with `weights_only=True`, sorted.

    Nothing in the file is run. ValueError for files that are no checkpoints in the zip format.
    """
    try:
        with zipfile.ZipFile(f) as archive:
            (name,) = [each for each in archive.namelist() if each.endswith("/data.pkl")]
            content = archive.read(name)
        named = set(_names(content))
    except (zipfile.BadZipFile, ValueError, pickle.UnpicklingError) as error:
        raise ValueError(f"Only checkpoints in the zip format can be inspected: {error}") from error
    trusted = trusted_globals()
    return sorted(name for name in named if name not in trusted and not _is_allowed(name))


def _is_allowed(name: str) -> bool:
    try:
        find_global(*name.rsplit(".", 1))
    except UnpicklingError:
        return False
    return True


def _names(content: bytes) -> Iterator[str]:
    strings: list[str] = []
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "GLOBAL":
            yield str(argument).replace(" ", ".")
        elif opcode.name == "STACK_GLOBAL" and len(strings) > 1:
            yield f"{strings[-2]}.{strings[-1]}"
        elif isinstance(argument, str):
            strings.append(argument)
