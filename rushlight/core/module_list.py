"""Import a package whose modules register themselves in a table. In: a package. Out: all of its modules are imported."""

from __future__ import annotations

import os
from importlib import import_module


def import_all(name: str, paths: list[str]) -> None:
    """Import every module and package in the package `name`, whose `__path__` is `paths`, in alphabetical order."""
    for entry in sorted(os.listdir(paths[0])):
        stem, _, suffix = entry.partition(".")
        is_package = not suffix and os.path.exists(os.path.join(paths[0], entry, "__init__.py"))
        if is_package or (suffix == "py" and stem != "__init__"):
            import_module(f"{name}.{stem}")
