"""List the globals in a checkpoint, without loading it."""

from __future__ import annotations

import os
import pickletools
from collections.abc import Iterator
from contextlib import closing
from typing import BinaryIO

from rushlight.serialization.allowlist import find_global
from rushlight.serialization.errors import CheckpointError, UnpicklingError
from rushlight.serialization.source import ByteSource
from rushlight.serialization.trust import trusted_globals
from rushlight.serialization.unpickler import MAX_PICKLE_BYTES
from rushlight.serialization.zip_reader import ZipReader


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike | BinaryIO) -> list[str]:
    """Return the classes and functions in a checkpoint that `load` rejects with `weights_only=True`, sorted.

    Nothing in the file is run. ValueError for files that are no checkpoints in the zip format, or that compute names at run
    time.
    """
    try:
        with closing(ByteSource(f)) as source:
            archive = ZipReader(source)
            (name,) = [each for each in archive.records if each.endswith("/data.pkl")]
            named = set(_names(archive.read(name, MAX_PICKLE_BYTES)))
    except (CheckpointError, ValueError) as error:
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
    """Yield the dotted names in a pickle. ValueError for a name that is computed by the pickle's instructions."""
    pushed: list[str | None] = []  # the strings among the pushed values; None for other values
    memo: dict[int, str | None] = {}
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name in ("GLOBAL", "INST"):
            yield str(argument).replace(" ", ".")
        if opcode.name == "STACK_GLOBAL" and len(pushed) > 1 and None not in pushed[-2:]:
            yield ".".join(pushed[-2:])
        elif opcode.name in ("STACK_GLOBAL", "EXT1", "EXT2", "EXT4"):
            raise ValueError("the pickle makes the name of a class or function by instructions")
        if opcode.name in ("GET", "BINGET", "LONG_BINGET"):
            pushed.append(memo.get(argument))
        elif opcode.name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if argument is None else argument] = pushed[-1] if pushed else None
        elif opcode.name != "PROTO" and opcode.name != "FRAME":
            pushed.append(argument if isinstance(argument, str) and opcode.name not in ("GLOBAL", "INST") else None)
