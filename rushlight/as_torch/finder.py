"""The finder under which `torch` and `torch.x.y` are `rushlight` and `rushlight.x.y`: the same module objects.

Names that PyTorch has elsewhere are in `MOVED`. What is not there is not found: `importlib.util.find_spec("torch.x")` says
None, and an import raises ModuleNotFoundError with the name.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

OWN, ALIAS = "rushlight", "torch"
TABLE = "docs/compatibility.md"
"""Which names of PyTorch are here."""

FOLDER = os.path.join(os.path.dirname(__file__), "site")
"""Holds a package `torch` that turns into Rushlight, for the processes that a program starts."""

MOVED: dict[str, str] = {}
"""Modules that have another name here: "torch.x" to "rushlight.y"."""


def own_name(name: str) -> str:
    """The module of Rushlight that `name`, a module of PyTorch, stands for."""
    return MOVED.get(name) or OWN + name[len(ALIAS) :]


class _SameModule(Loader):
    """Loads a module of Rushlight under its other name. The module keeps its own `__name__` and `__spec__`."""

    def __init__(self, own: str):
        self._own = own
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, imported."""
        module = importlib.import_module(self._own)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has been run as itself; the import system has put the alias's spec into it."""
        module.__spec__ = self._spec

    def get_code(self, name: str):
        """The module's code, for `python -m torch.x`."""
        return importlib.util.find_spec(self._own).loader.get_code(self._own)


class Finder(MetaPathFinder):
    """Finds `torch` and what lies in it."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module of PyTorch's that is here; None for other packages' modules, and for what is not here.

        ModuleNotFoundError: an import statement asks for what is not here.
        """
        if name != ALIAS and not name.startswith(ALIAS + "."):
            return None
        own = own_name(name)
        if (found := sys.modules.get(own)) is not None:
            is_package = hasattr(found, "__path__")
        else:
            try:
                spec = importlib.util.find_spec(own)
            except ModuleNotFoundError:
                spec = None
            if spec is None:
                if _is_imported(sys._getframe(1)):
                    raise ModuleNotFoundError(
                        f"No module named {name!r}: `torch` is Rushlight here, without it; {TABLE} lists what is there",
                        name=name,
                    )
                return None
            is_package = spec.submodule_search_locations is not None
        made = ModuleSpec(name, _SameModule(own), origin=getattr(found, "__file__", None), is_package=is_package)
        return made


def _is_imported(frame) -> bool:
    """Whether an import statement asks, and not `importlib.util.find_spec`."""
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib."):
        if frame.f_code.co_name == "_find_and_load":
            return True
        frame = frame.f_back
    return False
