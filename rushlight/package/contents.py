"""Contents: which modules a package has, by the paths of its files and the list of its external modules.

In: paths and names. Out: of a module's name where its source lies, or that it is external.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rushlight.package.records import HIDDEN


class Place(NamedTuple):
    """Where a module comes from. `source` is a path; None for a folder without `__init__.py`, and for external modules."""

    source: str | None
    is_package: bool
    is_external: bool = False


class Contents:
    """The modules of a package. Folders without code are packages, too; what lies in an external module is external."""

    def __init__(self, paths: Iterable[str], extern_modules: Iterable[str]):
        self._external = set(extern_modules)
        self._places: dict[str, Place] = {}
        for path in paths:
            if not path.startswith(f"{HIDDEN}/"):
                self._add(path)

    def is_external(self, name: str) -> bool:
        """Whether a module comes from the environment: it is listed, or lies in one that is, or holds some and no files."""
        above = name
        while above:
            if above in self._external:
                return True
            above = above.rpartition(".")[0]
        return name not in self._places and any(each.startswith(f"{name}.") for each in self._external)

    def find(self, name: str) -> Place | None:
        """Where a module comes from; None: the package neither has nor needs it."""
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
