"""Checkpoints: torch's `.pt` files and safetensors, read without running code and written for torch to read."""

from __future__ import annotations

from rushlight.core.lazy_module import lazy_names
from rushlight.serialization.errors import CheckpointError, PicklingError, UnpicklingError

_HOMES = {
    "rushlight.serialization.gguf": ("GGUFFile", "load_gguf", "save_gguf"),
    "rushlight.serialization.inspection": ("get_unsafe_globals_in_checkpoint",),
    "rushlight.serialization.loading": ("load",),
    "rushlight.serialization.options": (
        "LoadEndianness", "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options", "set_crc32_options",
        "set_default_load_endianness", "set_default_mmap_options", "skip_data",
    ),
    "rushlight.serialization.safetensors": ("load_safetensors", "save_safetensors"),
    "rushlight.serialization.saving": ("DEFAULT_PROTOCOL", "save"),
    "rushlight.serialization.storages": ("MAP_LOCATION", "FileLike", "default_restore_location", "location_tag"),
    "rushlight.serialization.trust": ("add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"),
    "rushlight.serialization.whole": ("_get_layout",),
}

__all__ = ["CheckpointError", "PicklingError", "UnpicklingError", *(name for names in _HOMES.values() for name in names)]
__getattr__, __dir__ = lazy_names(globals(), _HOMES)
