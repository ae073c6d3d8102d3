"""Read the pickles of a package: classes come from the package's modules, storages from its records.

In: the bytes of a pickle and the importer. Out: the object. Such a pickle may run any code, as the package's modules do.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rushlight.package.pickling import UNPACK_SCRIPT
from rushlight.package.records import HIDDEN
from rushlight.package.script_modules import ScriptReader
from rushlight.package.torch_modules import TORCH
from rushlight.serialization.errors import UnpicklingError
from rushlight.serialization.storages import MapLocation, StorageTable
from rushlight.serialization.whole import WholeUnpickler

if TYPE_CHECKING:
    from rushlight.package.package_importer import PackageImporter

_RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}
"""Names that modules had in Python 2, by which pickles of protocol 2 call them."""


def load_object(importer: PackageImporter, data: bytes, map_location: MapLocation) -> Any:
    """Return the object in a pickle; each storage is read once, for tensors and scripted modules alike."""
    table = StorageTable(partial(importer.records.storage, HIDDEN), map_location)
    return PackageUnpickler(importer, data, table).load()


class PackageUnpickler(WholeUnpickler):
    """Reads one pickle."""

    def __init__(self, importer: PackageImporter, data: bytes, table: StorageTable):
        super().__init__(io.BytesIO(data), table.persistent_load)
        self._importer = importer
        self._scripts = ScriptReader(importer.records, table)
        self._reduced: dict[int, Any] = {}

    def persistent_load(self, identity: Any) -> Any:
        """Return a storage, or an object described by its class's `__reduce_package__`."""
        if type(identity) is not tuple or len(identity) < 4:
            raise UnpicklingError("the pickle refers to an external object in an unknown form")
        if identity[0] == "reduce_package":
            return self._restore(*identity[1:])
        if identity[0] != "storage" or type(identity[2]) not in (int, str):
            raise UnpicklingError("the pickle refers to an external object that is no storage and says nothing else")
        return super().persistent_load((*identity[:2], f"{identity[2]}.storage", *identity[3:]))

    def _restore(self, key: int, function: Callable, arguments: tuple) -> Any:
        if type(key) is not int or not callable(function) or type(arguments) is not tuple:
            raise UnpicklingError("the pickle describes an object by something other than a function and its arguments")
        if key not in self._reduced:
            self._reduced[key] = function(self._importer, *arguments)
        return self._reduced[key]

    def find_class(self, module: str, name: str) -> Any:
        """Return a class or function of the package, or of an allowed module."""
        if (module, name) == UNPACK_SCRIPT:
            return lambda importer, number: self._scripts.read(number)
        if module.partition(".")[0] == TORCH:
            return super().find_class(module, name)
        found: Any = self._importer.import_module(_RENAMED.get(module, module))
        for part in name.split("."):
            found = getattr(found, part)
        return found
