"""Lazy imports: modules that are slow to import and that few programs need are imported at first use."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from rushlight.core.garbage import making_objects_that_stay


def fetch(name: str) -> ModuleType:
    """Import a module; its objects are marked as permanent for the garbage collector."""
    with making_objects_that_stay():
        return import_module(name)


@functools.cache
def optional(name: str) -> ModuleType | None:
    """Return a module of an optional package, or None where it is not installed."""
    try:
        return fetch(name)
    except ModuleNotFoundError:
        return None


class LazyModule:
    """A proxy of the module `name`: the first use of an attribute imports the module.

    For an optional package, `used_by` names the feature that needs it; ImportError then says what to install.
    """

    def __init__(self, name: str, used_by: str = ""):
        self._name = name
        self._used_by = used_by

    def __getattr__(self, attribute: str):
        found = sys.modules.get(self._name)
        if found is None:
            return getattr(self._fetch_module(), attribute)
        try:
            return getattr(found, attribute)
        except AttributeError:  # another thread may be importing the module: the import waits for it
            return getattr(self._fetch_module(), attribute)

    def _fetch_module(self) -> ModuleType:
        try:
            return fetch(self._name)
        except ModuleNotFoundError as error:
            package = self._name.partition(".")[0]
            if not self._used_by or (error.name or "").partition(".")[0] != package:
                raise
            raise ImportError(f"{self._used_by} needs {package}: pip install rushlight[{package}]", name=package) from error

    def __repr__(self) -> str:
        return f"<LazyModule {self._name!r}>"


def lazy_names(
    package: dict, homes: dict[str, tuple[str, ...]], aliases: dict[str, tuple[str, str]] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package whose names come from the modules in `homes`, imported at first use.

    `package` is its globals. `aliases` maps a name to a module and the name there, where the two names differ. The modules
    inside the package are its attributes too, as if they had been imported.
    """
    own = package["__name__"]
    home_of = {name: (home, name) for home, names in homes.items() for name in names} | (aliases or {})
    modules = {home.rpartition(".")[2] for home in homes if home.rpartition(".")[0] == own}

    def __getattr__(name: str) -> object:
        if name in home_of:
            home, there = home_of[name]
            package[name] = getattr(fetch(home), there)
        elif name in modules:
            package[name] = fetch(f"{own}.{name}")
        else:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        return package[name]

    def __dir__() -> list[str]:
        return sorted({*package, *home_of, *modules})

    return __getattr__, __dir__


def names_of(home: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module that re-exports the names of the module `home`, imported at first use."""

    def __getattr__(name: str) -> object:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(fetch(home), name)

    return __getattr__, lambda: dir(fetch(home))
