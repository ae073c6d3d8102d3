"""Contents: the modules of a package, by the paths of its files and the list of its external modules.

In: paths and names. Out: for a module's name, the location of its source, or that it is external.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rushlight.package.records import HIDDEN


class Place(NamedTuple):
    """The location of a module. `source` is a path; None for a folder without `__init__.py`, and for external modules."""

    source: str | None
    is_package: bool
    is_external: bool = False


class Contents:
    """The modules of a package. Folders without code are packages, too; submodules of an external module are external."""

    def __init__(self, paths: Iterable[str], extern_modules: Iterable[str]):
        self._external = set(extern_modules)
        self._places: dict[str, Place] = {}
        for path in paths:
            if not path.startswith(f"{HIDDEN}/"):
                self._add(path)

    def is_external(self, name: str) -> bool:
        """Return whether a module comes from the environment: it or a parent is listed, or a listed module is inside it and no
        file."""
        above = name
        while above:
            if above in self._external:
                return True
            above = above.rpartition(".")[0]
        return name not in self._places and any(each.startswith(f"{name}.") for each in self._external)

    def find(self, name: str) -> Place | None:
        """Return the location of a module; None if the package neither has nor needs it."""
        return Place(None, False, is_external=True) if self.is_external(name) else self._places.get(name)

    def _add(self, path: str) -> None:
        *folders, name = path.split("/")
        for end in range(1, len(folders) + 1):
            self._places.setdefault(".".join(folders[:end]), Place(None, True))
        if name == "__init__.py" and folders:
            self._places[".".join(folders)] = Place(path, True)
        elif name.endswith(".py"):
            module = ".".join((*folders, name.removesuffix(".py")))
            before = self._places.get(module)
            if before is None or before.source is None:
                self._places[module] = Place(path, False)
