"""PackageImporter: the modules, objects and files of a package, isolated from the environment's modules of the same names.

In: a package that `PackageExporter` or PyTorch wrote. Out: modules, run from the package's sources; objects; texts and bytes.
"""

from __future__ import annotations

import builtins
import io
import linecache
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from types import ModuleType
from typing import Any, BinaryIO

from rushlight.package.contents import Contents
from rushlight.package.dependencies import IMPORTER_MODULE
from rushlight.package.file_structure_representation import Directory, directory_of
from rushlight.package.glob_group import GlobPattern
from rushlight.package.importer import Importer, sys_importer
from rushlight.package.mangling import PackageMangler, demangle
from rushlight.package.records import EXTERN_MODULES, PYTHON_VERSION, open_records
from rushlight.package.torch_modules import TORCH
from rushlight.package.unpickling import load_object
from rushlight.serialization.errors import CheckpointError, UnpicklingError
from rushlight.serialization.storages import MapLocation

__all__ = ["PackageImporter"]

_ORIGIN = "<package_importer>"


class PackageImporter(Importer):
    """Imports from a package: `modules` maps names in the package to imported modules.

    **A package is code.** Importing a module runs it, and unpickling an object may run anything: open only packages that you
    trust. (The archive's own metadata, such as sizes and paths, is checked.)

    Args:
        file_or_buffer: the path of a package, or of an unpacked package's folder; or a seekable binary file.
        module_allowed: a predicate of the external modules that the package may import.

    Modules that the package calls external come from the environment; `torch` is Rushlight there. RuntimeError: the file is
    damaged or no package. ImportError: it needs a module that `module_allowed` refuses.
    """

    modules: dict[str, Any]

    def __init__(
        self,
        file_or_buffer: str | os.PathLike | BinaryIO,
        module_allowed: Callable[[str], bool] = lambda module_name: True,
    ):
        self.records, self.filename = open_records(file_or_buffer)
        weakref.finalize(self, self.records.close)
        self.extern_modules = self._text(EXTERN_MODULES).split()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{self.filename}' needs the external module '{name}' but that module has been disallowed"
                )
        self._importing = threading.RLock()
        self.modules = {IMPORTER_MODULE: self}
        self._contents = Contents(self.records.names(""), self.extern_modules)
        self._mangler = PackageMangler()
        self._builtins = {**vars(builtins), "__import__": self.__import__}

    # Modules

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Import a module of the package, or an external one. `package` is the base of a relative name.

        ModuleNotFoundError if it is neither in the package nor external.
        """
        return self._import(resolve_name(name, package) if name.startswith(".") else self._mangler.demangle(name))

    def get_source(self, module_name: str) -> str:
        """Return the source of a module of the package; "" for a folder without one. ModuleNotFoundError: it has no such
        module."""
        name = demangle(module_name)
        place = self._contents.find(name)
        if place is None or place.is_external:
            raise self._not_found(name)
        return self._text(place.source) if place.source is not None else ""

    def _import(self, name: str) -> ModuleType:
        with self._importing:
            return self.modules[name] if name in self.modules else self._find_and_run(name)

    def _find_and_run(self, name: str) -> ModuleType:
        if not name:
            raise ValueError("Empty module name")
        place = self._contents.find(name)
        if place is None:
            raise self._not_found(name)
        parent, _, last = name.rpartition(".")
        if place.is_external:
            self.modules[name] = sys_importer.import_module(name)
            if parent and not self._contents.is_external(parent):
                setattr(self._import(parent), last, self.modules[name])
            return self.modules[name]
        above = self._import(parent) if parent else None
        if name not in self.modules:  # else the parent package's code has imported the module already
            self._run(name, place.source, place.is_package)
        if above is not None:
            setattr(above, last, self.modules[name])
        return self.modules[name]

    def _not_found(self, name: str) -> ModuleNotFoundError:
        return ModuleNotFoundError(
            f'No module named "{name}" in self-contained archive "{self.filename}" and the module is also not in the list of '
            f"allowed external modules: {self.extern_modules}", name=name,
        )  # fmt: skip

    def _run(self, name: str, source: str | None, is_package: bool) -> None:
        """Create a module and run its code. A module that fails is removed again."""
        module = self._new_module(name, source, is_package)
        self.modules[name] = module
        if source is None:
            return
        sys.modules[module.__name__] = module  # class creation looks the module up there
        try:
            exec(compile(self._text(source), module.__file__, "exec", dont_inherit=True), vars(module))
            linecache.lazycache(module.__file__, vars(module))
        except BaseException:
            self.modules.pop(name, None)
            raise
        finally:
            sys.modules.pop(module.__name__, None)

    def _new_module(self, name: str, source: str | None, is_package: bool) -> ModuleType:
        module = ModuleType(self._mangler.mangle(name))
        spec = ModuleSpec(name, self, origin=_ORIGIN, is_package=is_package)
        vars(module).update(
            __package__=name if is_package else name.rpartition(".")[0], __loader__=self, __spec__=spec, __cached__=None,
            __file__=None if source is None else self._mangler.mangle(source), __builtins__=self._builtins,
            __torch_package__=True,
        )  # fmt: skip
        if is_package:
            vars(module)["__path__"] = []
        return module

    def __import__(
        self, name: str, globals: dict[str, Any] | None = None, locals: Any = None, fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:  # fmt: skip
        """Return the `__import__` of the package's code."""
        if level:
            package = (globals or {}).get("__package__") or ""
            if not package:
                raise ImportError("attempted relative import with no known parent package")
            name = resolve_name("." * level + name, package)
        module = self._import(name)
        if fromlist:
            self._import_members(name, module, fromlist)
            return module
        return module if level else self._import(name.partition(".")[0])

    def _import_members(self, name: str, module: ModuleType, members: Sequence[str]) -> None:
        """Import those of a package's members that are modules and not imported yet."""
        if not hasattr(module, "__path__"):
            return
        if "*" in members:
            members = [*(each for each in members if each != "*"), *getattr(module, "__all__", ())]
        for member in members:
            full = f"{name}.{member}"
            if not hasattr(module, member):
                try:
                    self._import(full)
                except ModuleNotFoundError as error:
                    if error.name not in (full, full.replace(TORCH, "rushlight", 1)):
                        raise

    # Objects and files

    def load_binary(self, package: str, resource: str) -> bytes:
        """Return the bytes of a file of a package. RuntimeError if there is none, TypeError if it is a module that holds no
        files."""
        return self.records.content(self._path(package, resource))

    def load_text(self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the text of a file of a package."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: MapLocation = None) -> Any:
        """Load an object from `save_pickle`. `map_location` places storages, as for `rushlight.load`.

        Runs the code of the object's classes. RuntimeError, UnpicklingError: the pickle or a storage is malformed.
        """
        try:
            return load_object(self, self.load_binary(package, resource), map_location)
        except CheckpointError as error:
            raise CheckpointError(f"'{self.filename}': {error}") from error
        except EOFError as error:
            raise UnpicklingError(f"'{self.filename}': the pickle {package}.{resource} ends too early") from error

    def id(self) -> str:
        """Return the prefix of this importer's module names: `<torch_package_0>`."""
        return self._mangler.prefix

    def file_structure(self, *, include: GlobPattern = "**", exclude: GlobPattern = ()) -> Directory:
        """Return the files of the package whose paths match."""
        return directory_of(self.filename, self.records.names(""), include, exclude)

    def python_version(self) -> str | None:
        """Return the version of Python that wrote the package; None if it is not recorded."""
        return self._text(PYTHON_VERSION).strip() if self.records.has(PYTHON_VERSION) else None

    def get_resource_reader(self, fullname: str) -> PackageResourceReader | None:
        """Return the resource reader of a package for `importlib.resources`; None if there is no such package."""
        try:
            self._folder(fullname)
        except ModuleNotFoundError:
            return None
        return PackageResourceReader(self, demangle(fullname))

    def _text(self, name: str) -> str:
        try:
            return self.records.content(name).decode()
        except UnicodeDecodeError:
            raise CheckpointError(f"record '{name}' is not UTF-8") from None

    def _path(self, package: str, resource: str) -> str:
        folder = self._folder(package)
        if not resource or set(resource) & set("/\\\0"):
            raise ValueError(f"'{resource}' must be only a file name")
        return f"{folder}/{resource}"

    def _folder(self, package: str) -> str:
        """Import a package, and return its folder."""
        module = self.import_module(package)
        if not getattr(module, "__torch_package__", False) or not hasattr(module, "__path__"):
            raise TypeError(f"{package!r} is not a package")
        return demangle(module.__name__).replace(".", "/")


class PackageResourceReader:
    """The files of one package, for `importlib.resources`."""

    def __init__(self, importer: PackageImporter, name: str):
        self._importer = importer
        self._name = name

    def open_resource(self, resource: str) -> io.BytesIO:
        """Open a file. FileNotFoundError if there is none."""
        if not self.is_resource(resource):
            raise FileNotFoundError(f"{resource!r} in the package {self._name!r}")
        return io.BytesIO(self._importer.load_binary(self._name, resource))

    def resource_path(self, resource: str) -> str:
        """Raise FileNotFoundError: the files are not on disk."""
        raise FileNotFoundError(f"{resource!r} lies in the package {self._importer.filename!r} and has no path")

    def is_resource(self, name: str) -> bool:
        """Return whether there is a file with this name."""
        return self._importer.records.has(f"{self._name.replace('.', '/')}/{name}")

    def contents(self) -> Iterator[str]:
        """Return the names of files and folders."""
        inner = self._importer.records.names(f"{self._name.replace('.', '/')}/")
        return iter(dict.fromkeys(name.partition("/")[0] for name in inner))
