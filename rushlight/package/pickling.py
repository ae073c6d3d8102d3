"""PackagePickler: pickle an object for a package, with the names of its modules there.

In: an object, and an importer that names classes and functions. Out: pickle bytes of protocol 2, and the modules that they
refer to. This library's classes are written under PyTorch's names.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.package.importer import Importer, ObjMismatchError, ObjNotFoundError
from rushlight.package.storage_keys import StorageKeys
from rushlight.package.torch_modules import is_library
from rushlight.serialization.errors import PicklingError
from rushlight.serialization.objects import find_named, module_of
from rushlight.serialization.pickler import Pickler


class GlobalName(NamedTuple):
    """A global of a pickle that exists only in PyTorch."""

    module: str
    name: str


UNPACK_SCRIPT = GlobalName("torch.jit._script", "unpackage_script_module")
"""The function that makes a scripted module of an importer and the number of its folder."""

Describe = Callable[[Any], tuple | None]


class PackagePickler(Pickler):
    """Writes one object. `describe(object)` returns the persistent id of objects with their own pickling, else None.

    `names` are the modules that the pickle refers to, with the names in them.
    """

    def __init__(self, importer: Importer, keys: StorageKeys, describe: Describe):
        super().__init__()
        keys.share(self)
        self.importer = importer
        self.describe = describe
        self.names: dict[str, list[str]] = {}

    def save(self, value: Any) -> None:
        """Write one value, or a reference to it."""
        if type(value) is GlobalName:
            self.write_global(*value)
            return
        described = self.describe(value)
        if described is None:
            super().save(value)
        else:
            super().save(described)
            self.out += pickle.BINPERSID

    def write_global(self, module: str, name: str) -> None:
        """Write the name of a global."""
        module = "builtins" if module == "__builtin__" else module
        self.names.setdefault(module, []).append(name)
        super().write_global(module, name)

    def storage_key(self, storage, element_type) -> int:
        """Return the number of a storage."""
        return int(super().storage_key(storage, element_type))

    def module_of(self, value: Any, qualified: str) -> str:
        """Return the module of a class or function in the package; PicklingError if the importer doesn't have it."""
        said = getattr(value, "__module__", None) or ""
        if said == "builtins" or is_library(said):
            return module_of(value, qualified)
        try:
            module, _ = self.importer.get_name(value, qualified)
        except (ObjNotFoundError, ObjMismatchError) as error:
            raise PicklingError(f"Can't pickle {value!r}: {str(error).strip()}") from None
        return module

    def find_named(self, module: str, qualified: str) -> Any:
        """Return the object of a qualified name."""
        if is_library(module) or module == "__builtin__":
            return find_named(module, qualified)
        found: Any = self.importer.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
        return found
