"""Helpers around the library: hooks, trees, checkpointing, data loading."""

from __future__ import annotations

from importlib import import_module

# Import these lazily: they depend on modules that need the helpers here.
_LATER = (
    "_contextlib", "_foreach_utils", "_python_dispatch", "_pytree", "benchmark", "checkpoint", "collect_env", "cpp_extension",
    "data", "deterministic", "dlpack", "flop_counter", "model_zoo", "module_tracker", "pytree", "tensorboard", "weak",
)  # fmt: skip


def __getattr__(name: str):
    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    if name == "swap_tensors":
        return import_module(f"{__name__}.swapping").swap_tensors
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
