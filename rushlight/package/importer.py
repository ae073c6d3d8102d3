"""Importers: find modules and the names of objects, in the environment or in packages.

In: the name of a module, or an object. Out: the module; the module and name under which an importer has the object.
"""

from __future__ import annotations

import importlib
import logging
import pickle
import sys
from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

from rushlight.package.mangling import demangle, is_mangled, mangle_prefix
from rushlight.package.torch_modules import own_name


class ObjNotFoundError(Exception):
    """An importer has no object under the object's own name."""


class ObjMismatchError(Exception):
    """An importer has a different object under the object's own name."""


class Importer(ABC):
    """Finds modules, and the names of objects in them."""

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """Import a module by name. ModuleNotFoundError if there is none."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """Return the module and the name in it of an object in this importer; the module's name has no mangling prefix.

        ObjNotFoundError if there is nothing under these names, ObjMismatchError if there is another object.
        """
        name = name or _own_name_of(obj)
        module_name = self.whichmodule(obj, name)
        plain = demangle(module_name)
        try:
            found: Any = self.import_module(plain)
            imported_name = found.__name__
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is not obj:
            raise ObjMismatchError(_mismatch_message(module_name, imported_name))
        return plain, name

    def whichmodule(self, obj: Any, name: str) -> str:
        """Return the object's own module name, or else a module of this importer that has it under `name`."""
        said = getattr(obj, "__module__", None)
        if said is not None:
            return said
        for module_name, module in list(self.modules.items()):
            if module_name != "__main__" and isinstance(module, ModuleType) and vars(module).get(name) is obj:
                return module_name
        return "__main__"


def _own_name_of(obj: Any) -> str:
    """Return an object's own name: a class's or function's qualified name, for others the one from `__reduce__`."""
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if isinstance(name, str):
        return name
    reduced = obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    if isinstance(reduced, str):
        return reduced
    raise ObjNotFoundError(f"{obj!r} has no name: it is neither a class nor a function, and isn't pickled by name")


def _mismatch_message(said: str, imported: str) -> str:
    here, there = (_origin(name) for name in (said, imported))
    if here == there:
        return f"what {said} has under this name is another object than the one provided"
    first = mangle_prefix(said)
    order = (
        f"the importer for {first} before 'sys_importer'" if first and not is_mangled(imported)
        else f"'sys_importer' before the importer for {mangle_prefix(imported)}" if not first
        else f"the importer for {first} before the importer for {mangle_prefix(imported)}"
    )  # fmt: skip
    return (
        f"\n\nThe object provided is from '{said}', which is coming from {here}."
        f"\nHowever, when we import '{imported}', it's coming from {there}."
        f"\nTo fix this, make sure this 'PackageExporter's importer lists {order}."
    )


def _origin(module_name: str) -> str:
    return mangle_prefix(module_name) or "the current Python environment"


class _SysImporter(Importer):
    """The environment's modules, as `import` finds them; Rushlight replaces those of PyTorch."""

    @property
    def modules(self) -> dict[str, ModuleType]:
        return sys.modules

    def import_module(self, module_name: str) -> ModuleType:
        return importlib.import_module(own_name(module_name))


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Several importers, tried in order. TypeError if one is no importer."""

    def __init__(self, *args: Importer):
        for each in args:
            if not isinstance(each, Importer):
                raise TypeError(f"OrderedImporter takes importers, got {type(each).__name__}")
        self._importers = list(args)

    def import_module(self, module_name: str) -> ModuleType:
        """Import a module from the first importer that has it. A package folder without `__init__.py` has lowest priority."""
        folder, error = None, None
        for each in self._importers:
            try:
                module = each.import_module(module_name)
            except ModuleNotFoundError as missing:
                if missing.name not in (None, module_name) and not module_name.startswith(f"{missing.name}."):
                    raise  # the module itself exists; a module that it imports is missing
                error = missing
                continue
            if not _is_folder(module):
                return module
            folder = folder or module
        if folder is not None:
            return folder
        raise error or ModuleNotFoundError(f"No module named {module_name!r}", name=module_name)

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """Return the name from the first importer that has the object; else the last error."""
        last: Exception = ObjNotFoundError(f"there are no importers that could have {obj}")
        for each in self._importers:
            try:
                return each.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                last = error
                if isinstance(error, ObjMismatchError):
                    logging.getLogger(__name__).warning(
                        "Tried to call get_name with obj %s, and name %s on %s and got %s", obj, name, each, error)
        raise last

    def whichmodule(self, obj: Any, name: str) -> str:
        """Return the module name from the first importer that knows it."""
        return next((found for each in self._importers if (found := each.whichmodule(obj, name)) != "__main__"), "__main__")


def _is_folder(module: ModuleType) -> bool:
    return getattr(module, "__torch_package__", False) and hasattr(module, "__path__") and module.__file__ is None
