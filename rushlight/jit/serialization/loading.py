"""`load`: an archive to a ScriptModule. The entry of the reading half.

In: a path or a file. Out: a module whose methods are compiled from the archive's code when they are first called. RuntimeError
names the file and what is wrong with it; only what the language defines is ever run.
"""

from __future__ import annotations

import os
import pickle
from functools import partial
from typing import BinaryIO

from rushlight.core.device import device
from rushlight.core.garbage import making_objects_that_stay
from rushlight.core.lazy_module import LazyModule
from rushlight.jit.module import ScriptModule
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.serialization.archive import MAX_TEXT, Archive
from rushlight.jit.serialization.importer import Importer
from rushlight.jit.serialization.kept_graphs import KeptGraphs
from rushlight.jit.serialization.module_objects import module_of
from rushlight.jit.serialization.unpickling import unpickle
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.loading import set_script_loader
from rushlight.serialization.source import ByteSource
from rushlight.serialization.storages import MapLocation, StorageTable
from rushlight.serialization.unpickler import MAX_PICKLE_BYTES

first_format = LazyModule("rushlight.jit.serialization.first_format")


def load(
    f: str | os.PathLike | BinaryIO,
    map_location: MapLocation = None,
    _extra_files: dict[str, str | bytes] | None = None,
    _restore_shapes: bool = False,
) -> ScriptModule:
    """Load a TorchScript archive that torch or rushlight saved: from a path, or a binary file that can seek.

    `map_location` places storages: a device, a dict from saved to wanted device strings, or a function (storage, location) ->
    storage or None. The values of `_extra_files` are replaced by the bytes of the archive's records of these names. Methods are
    compiled when they are first called. RuntimeError says what is wrong with a file that is damaged or no such archive.
    """
    source = ByteSource(f)
    try:
        with making_objects_that_stay():
            return _Loader(Archive(source), map_location).load(_extra_files)
    except RecursionError:
        raise RuntimeError(f"{source.name}: its contents are nested too deeply") from None
    except (CheckpointError, pickle.UnpicklingError, RuntimeError) as error:
        raise RuntimeError(f"{source.name}: {error}") from error
    finally:
        source.close()


class _Loader:
    """Loads one archive. Code and constants are read immediately, so that the file may be closed."""

    def __init__(self, archive: Archive, map_location: MapLocation):
        self.archive = archive
        self.map_location = device(map_location) if isinstance(map_location, str) else map_location
        folders = ("libs/", "code/") if archive.is_first_format else ("code/",)
        self.texts = {name: archive.text(folder + name) for folder in folders for name in archive.names(folder)
                      if name.endswith(".py")}  # fmt: skip
        endings = [f"code/{name}" for name in archive.names("code/") if name.endswith(".debug_pkl")]
        self.debug = {name: archive.bytes(name, MAX_TEXT) for name in endings}
        self.importer = Importer(self._text, self.debug.get, archive.version, lambda: self.constants)
        self.constants: tuple = ()
        if not archive.is_first_format:
            self.importer.kept_graphs = KeptGraphs(self.importer, self._compiled_content)

    def _compiled_content(self) -> list[str]:
        """Return the inputs of compilation: code and constants, identified by the checksums that reading has verified."""
        records = self.archive.records.values()
        constants = [f"{each.name.removeprefix(self.archive.root)} {each.size} {each.checksum}" for each in records
                     if each.name.startswith(f"{self.archive.root}constants")]  # fmt: skip
        return [str(self.archive.version), *constants, *(part for item in sorted(self.texts.items()) for part in item)]

    def _text(self, name: str) -> str | None:
        return self.texts.get(name.removeprefix("code/"))

    def load(self, extra_files: dict[str, str | bytes] | None) -> ScriptModule:
        """Return the module of the archive."""
        root = self._load_first_format() if self.archive.is_first_format else self._load_pickled()
        for name in extra_files or ():
            if self.archive.has(f"extra/{name}"):
                extra_files[name] = self.archive.bytes(f"extra/{name}", MAX_TEXT)
        return module_of(root)

    def _load_first_format(self) -> ScriptObject:
        read = first_format.FirstFormat(self.archive, self.importer, self.map_location)
        self.constants = tuple(tensor.detach() for tensor in read.tensors)
        return read.main_module()

    def _load_pickled(self) -> ScriptObject:
        if self.archive.has("constants.pkl"):
            constants = self._unpickle("constants.pkl", "constants")
            if not isinstance(constants, tuple):
                raise CheckpointError(f"constants.pkl holds a {type(constants).__name__}, and a tuple is expected")
            self.constants = constants
        root = self._unpickle("data.pkl", "data")
        if not isinstance(root, ScriptObject) or not root.type.is_module:
            raise CheckpointError("data.pkl holds no module")
        return root

    def _unpickle(self, name: str, folder: str) -> object:
        table = StorageTable(partial(self.archive.storage, folder), self.map_location)
        data = self.archive.bytes(name, MAX_PICKLE_BYTES)
        return unpickle(data, table.persistent_load, self.importer.find_type, self.importer.parse_type)


set_script_loader(load)
