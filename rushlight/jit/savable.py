"""The base of scripted functions and modules: saving."""

from __future__ import annotations

import os
from typing import BinaryIO

from rushlight.core.lazy_module import LazyModule

saving = LazyModule("rushlight.jit.serialization.saving")  # lazy: it imports functions and modules


class Savable:
    """Base of scripted functions and modules."""

    def save(self, f: str | os.PathLike | BinaryIO, _extra_files: dict | None = None) -> None:
        """Write an archive, as `rushlight.jit.save` does."""
        saving.save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: dict | None = None) -> bytes:
        """Return the bytes of an archive."""
        return saving.save_to_buffer(self, _extra_files)
