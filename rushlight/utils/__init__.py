"""Helpers around the library: hooks, trees, checkpointing, data loading."""

from __future__ import annotations

from importlib import import_module

# They build on modules, which themselves need the helpers here: imported when first used.
_LATER = (
    "_python_dispatch", "_pytree", "checkpoint", "cpp_extension", "data", "dlpack", "flop_counter", "model_zoo",
    "module_tracker", "pytree",
)  # fmt: skip


def __getattr__(name: str):
    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
