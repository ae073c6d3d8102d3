"""Importers: where modules and the names of objects come from, the environment or packages.

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
    """An importer doesn't have an object under the name that the object says."""


class ObjMismatchError(Exception):
    """An importer has another object under the name that the object says."""


class Importer(ABC):
    """Finds modules, and says under which names it has objects."""

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """The module of a name. ModuleNotFoundError: there is none."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The module and the name in it under which this importer has an object; the module's name without a prefix.

        ObjNotFoundError: it has nothing under these names. ObjMismatchError: what it has there is another object.
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
            raise ObjMismatchError(_mismatch(module_name, imported_name))
        return plain, name

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that an object says, or else of one of this importer that has it under `name`."""
        said = getattr(obj, "__module__", None)
        if said is not None:
            return said
        for module_name, module in list(self.modules.items()):
            if module_name != "__main__" and isinstance(module, ModuleType) and vars(module).get(name) is obj:
                return module_name
        return "__main__"


def _own_name_of(obj: Any) -> str:
    """What an object is called: a class or function by its qualified name, others as their `__reduce__` says."""
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if isinstance(name, str):
        return name
    reduced = obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    if isinstance(reduced, str):
        return reduced
    raise ObjNotFoundError(f"{obj!r} has no name: it is neither a class nor a function, and isn't pickled by name")


def _mismatch(said: str, imported: str) -> str:
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
    """The modules of the environment, as `import` finds them; those of PyTorch are Rushlight's."""

    @property
    def modules(self) -> dict[str, ModuleType]:
        return sys.modules

    def import_module(self, module_name: str) -> ModuleType:
        return importlib.import_module(own_name(module_name))


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Several importers, asked in their order. TypeError: one of them is none."""

    def __init__(self, *args: Importer):
        for each in args:
            if not isinstance(each, Importer):
                raise TypeError(f"OrderedImporter takes importers, got {type(each).__name__}")
        self._importers = list(args)

    def import_module(self, module_name: str) -> ModuleType:
        """The module of the first that has it. A folder of a package without an `__init__.py` counts where no other has one."""
        folder, error = None, None
        for each in self._importers:
            try:
                module = each.import_module(module_name)
            except ModuleNotFoundError as missing:
                if missing.name not in (None, module_name) and not module_name.startswith(f"{missing.name}."):
                    raise  # the module is there, and imports another that is not
                error = missing
                continue
            if not _is_folder(module):
                return module
            folder = folder or module
        if folder is not None:
            return folder
        raise error or ModuleNotFoundError(f"No module named {module_name!r}", name=module_name)

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The name of the first that has the object. The error, where none has it, is the last one's."""
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
        """The module that the first says which knows one."""
        return next((found for each in self._importers if (found := each.whichmodule(obj, name)) != "__main__"), "__main__")


def _is_folder(module: ModuleType) -> bool:
    return getattr(module, "__torch_package__", False) and hasattr(module, "__path__") and module.__file__ is None
