"""Modules that are imported when they are first used, because their import takes long and few programs need them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from rushlight.core.garbage import making_objects_that_stay


def fetch(name: str) -> ModuleType:
    """Import a module, whose objects stay."""
    with making_objects_that_stay():
        return import_module(name)


@functools.cache
def optional(name: str) -> ModuleType | None:
    """A module of a package that need not be there; None where it is not."""
    try:
        return fetch(name)
    except ModuleNotFoundError:
        return None


class LazyModule:
    """Stands for the module `name`; its attributes are the module's, and the first use of one imports it.

    `used_by` says what cannot do without the module, where it is of an optional package; ImportError then says what to install.
    """

    def __init__(self, name: str, used_by: str = ""):
        self._name = name
        self._used_by = used_by

    def __getattr__(self, attribute: str):
        found = sys.modules.get(self._name)
        return getattr(self._fetched() if found is None else found, attribute)

    def _fetched(self) -> ModuleType:
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
    """`__getattr__` and `__dir__` for a package that has names whose modules, the keys of `homes`, are imported at first use.

    `package` are its globals. `aliases` are names that are others in their modules: a module and the name there. The modules
    that lie in the package are its attributes, too, as if they had been imported.
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
    """`__getattr__` and `__dir__` for a module that has the names of the module `home`, which the first use of one imports."""

    def __getattr__(name: str) -> object:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(fetch(home), name)

    return __getattr__, lambda: dir(fetch(home))
