"""Modules that are imported when they are first used, because their import takes long and few programs need them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module


class LazyModule:
    """Stands for the module `name`; its attributes are the module's, and the first use of one imports it."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str):
        return getattr(import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<LazyModule {self._name!r}>"


def lazy_names(package: dict, homes: dict[str, tuple[str, ...]]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package that has names whose modules, the keys of `homes`, are imported at first use.

    `package` are its globals. The modules that lie in it are its attributes, too, as if they had been imported.
    """
    own = package["__name__"]
    home_of = {name: home for home, names in homes.items() for name in names}
    modules = {home.rpartition(".")[2] for home in homes if home.rpartition(".")[0] == own}

    def __getattr__(name: str) -> object:
        if name in home_of:
            package[name] = getattr(import_module(home_of[name]), name)
        elif name in modules:
            package[name] = import_module(f"{own}.{name}")
        else:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        return package[name]

    def __dir__() -> list[str]:
        return sorted({*package, *home_of, *modules})

    return __getattr__, __dir__
