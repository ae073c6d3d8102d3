"""`is_from_package`: whether an object was loaded from a package."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from rushlight.package.mangling import is_mangled

__all__ = ["is_from_package"]


def is_from_package(obj: Any) -> bool:
    """Return whether a module was imported from a package, or the class of any other object was."""
    return is_mangled(obj.__name__ if isinstance(obj, ModuleType) else type(obj).__module__)
