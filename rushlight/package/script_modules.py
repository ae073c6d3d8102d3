"""Scripted modules in packages: they share the code under `.data/ts_code/code`, and each has a folder for its objects.

In: modules, or the folders' numbers. Out: records, or modules. There is one table of constants; every folder holds those known
when it was written.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.jit.module import ScriptModule
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.serialization.archive import MAX_TEXT
from rushlight.jit.serialization.class_printer import Program
from rushlight.jit.serialization.importer import Importer
from rushlight.jit.serialization.module_objects import module_of
from rushlight.jit.serialization.pickling import ArchivePickler
from rushlight.jit.serialization.saving import version_of
from rushlight.jit.serialization.unpickling import unpickle
from rushlight.jit.types.kinds import TupleType
from rushlight.package.records import HIDDEN, Records
from rushlight.package.storage_keys import StorageKeys
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.storages import StorageTable
from rushlight.serialization.unpickler import MAX_PICKLE_BYTES

_FOLDER = f"{HIDDEN}/ts_code"
_CODE = f"{_FOLDER}/code/"


class _ScriptPickler(ArchivePickler):
    """Pickles values whose storages are records of the package."""

    def __init__(self, program: Program, keys: StorageKeys):
        super().__init__(program.types)
        keys.share(self)

    def storage_key(self, storage, element_type) -> str:
        """Return the name of a storage's record."""
        return f"{super().storage_key(storage, element_type)}.storage"


class ScriptWriter:
    """Writes the scripted modules of one package by `write(name, data)`."""

    def __init__(self, write: Callable[[str, bytes], None], keys: StorageKeys):
        self._write = write
        self._keys = keys
        self._program = Program()
        self._numbers: dict[int, tuple[str, ScriptModule]] = {}

    def add(self, module: ScriptModule) -> str:
        """Write a module's objects, once; returns the number of their folder. RuntimeError if an archive can't hold them."""
        if id(module) not in self._numbers:
            number = str(len(self._numbers))
            root = module._c
            self._program.add(root.type)
            data = _ScriptPickler(self._program, self._keys).dump_typed(root, root.type)
            self._program.finish()
            self._write(f"{_FOLDER}/{number}/data.pkl", data)
            self._write(f"{_FOLDER}/{number}/constants.pkl", self._constants())
            self._numbers[id(module)] = (number, module)
        return self._numbers[id(module)][0]

    def _constants(self) -> bytes:
        held = self._program.constants.values
        kind = TupleType(tuple(kind for _, kind in held))
        return _ScriptPickler(self._program, self._keys).dump_typed(tuple(value for value, _ in held), kind)

    def finish(self) -> int:
        """Write the code of all modules; returns the version of its operators."""
        debug = self._program.debug_files()
        for name, text in self._program.files().items():
            self._write(_CODE + name, text.encode())
            self._write(f"{_CODE}{name}.debug_pkl", debug[name])
        return version_of(self._program)


class ScriptReader:
    """Reads the scripted modules of one pickle, whose types they share. `table` has the storages."""

    def __init__(self, records: Records, table: StorageTable):
        self._records = records
        self._table = table
        self._constants: tuple = ()
        self._importer = Importer(self._text, self._debug, records.version, lambda: self._constants)

    def read(self, number: object) -> ScriptModule:
        """Return the module in a folder. RuntimeError: it is malformed."""
        if type(number) is not str or not (number.isascii() and number.isdigit()):
            raise CheckpointError(f"refers to a scripted module by {number!r:.100}, and they have numbers")
        constants = self._unpickle(f"{_FOLDER}/{number}/constants.pkl")
        if not isinstance(constants, tuple):
            raise CheckpointError(f"constants.pkl holds a {type(constants).__name__}, and a tuple is expected")
        self._constants = max(self._constants, constants, key=len)
        root = self._unpickle(f"{_FOLDER}/{number}/data.pkl")
        if not isinstance(root, ScriptObject) or not root.type.is_module:
            raise CheckpointError("data.pkl of a scripted module holds no module")
        return module_of(root)

    def _unpickle(self, name: str) -> object:
        load = self._table.persistent_load
        data = self._records.bytes(name, MAX_PICKLE_BYTES)
        return unpickle(data, load, self._importer.find_type, self._importer.parse_type)

    def _text(self, name: str) -> str | None:
        name = f"{_FOLDER}/{name}"
        return self._records.text(name) if self._records.has(name) else None

    def _debug(self, name: str) -> bytes | None:
        name = f"{_FOLDER}/{name}"
        return self._records.bytes(name, MAX_TEXT) if self._records.has(name) else None
