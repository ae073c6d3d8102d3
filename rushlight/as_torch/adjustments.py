"""Packages that would not run without their compiled extension, though they have Python code for the case that it is missing.

In: a module that is about to be imported. Out: the module, changed so that its package takes the way without the extension.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def _without_extension(utils: ModuleType) -> None:
    """torchaudio takes a library that lies there for one that can be loaded."""

    def load(lib: str) -> bool:
        warnings.warn(
            "torchaudio's extension is built against libtorch, PyTorch's C++ library, which Rushlight does not have: "
            "torchaudio runs without it, as far as its Python code goes",
            stacklevel=2,
        )
        return False

    utils._load_lib = load  # type: ignore[attr-defined]


ADJUSTMENTS: dict[str, Callable[[ModuleType], None]] = {"torchaudio._extension.utils": _without_extension}


class _Adjusting:
    """A module's loader, after which the module is adjusted."""

    def __init__(self, loader: Any, adjust: Callable[[ModuleType], None]):
        self._loader = loader
        self._adjust = adjust

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._adjust(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class Finder:
    """Finds the modules of `ADJUSTMENTS` as others do, and has them adjusted."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module that is to be adjusted; None for all others."""
        if name not in ADJUSTMENTS:
            return None
        for finder in sys.meta_path:
            found = None if finder is self else finder.find_spec(name, path, target)
            if found is not None:
                break
        else:
            return None
        made = importlib.util.spec_from_loader(name, _Adjusting(found.loader, ADJUSTMENTS[name]), origin=found.origin)
        if made is not None:
            made.has_location, made.cached = found.has_location, found.cached
        return made
