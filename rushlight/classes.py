"""`torch.classes`: classes that C++ extensions of libtorch register, of which there are none here."""

from __future__ import annotations

import os

from rushlight.ops.libraries import load_library as _load_library

loaded_libraries: set[str] = set()


class _Namespace:
    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            f"Tried to instantiate class '{self._name}.{name}', but it does not exist! Classes of C++ extensions of libtorch "
            "cannot be registered here."
        )


def load_library(path: str | os.PathLike) -> None:
    """Load a library. OSError: it cannot be, as all built against libtorch."""
    _load_library(path)
    loaded_libraries.add(str(path))


def __getattr__(name: str) -> _Namespace:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.classes' has no attribute {name!r}")
    return _Namespace(name)
