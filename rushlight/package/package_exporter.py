"""PackageExporter: code, objects and files to a package, one zip file that `PackageImporter` and PyTorch read.

In: objects, files, and patterns that say which modules are copied (interned), taken from the environment (externed), replaced
by stubs (mocked) or refused (denied). Out: the file.
"""

from __future__ import annotations

import inspect
import os
import platform
import shutil
import sys
import tempfile
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from rushlight.jit.module import ScriptModule
from rushlight.jit.script_function import ScriptFunction
from rushlight.package import mocked
from rushlight.package.dependencies import MOCK_MODULE, Action, Dependencies, Pattern
from rushlight.package.digraph import DiGraph
from rushlight.package.glob_group import GlobGroup, GlobPattern
from rushlight.package.importer import Importer, OrderedImporter, sys_importer
from rushlight.package.packaging_errors import EmptyMatchError, PackagingError, PackagingErrorReason
from rushlight.package.pickling import UNPACK_SCRIPT, PackagePickler
from rushlight.package.records import EXTERN_MODULES, HIDDEN, PYTHON_VERSION
from rushlight.package.script_modules import ScriptWriter
from rushlight.package.storage_keys import StorageKeys
from rushlight.serialization.errors import PicklingError
from rushlight.serialization.saving import replace_file
from rushlight.serialization.zip_writer import ZipWriter
from rushlight.utils.hooks import RemovableHandle

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

Hook = Callable[["PackageExporter", str], None]
_OLDEST_VERSION = 6
"""The lowest version of the package format that is written."""
_PROTOCOLS = (2, 3)
_STUB = f'''from {MOCK_MODULE} import MockedObject


def __getattr__(attr: str):
    return MockedObject(__name__ + "." + attr, _suppress_err=True)
'''


class PackageExporter:
    """Writes a package. Use it as a context manager, or call `close`: then the file is written, as a whole or not at all.

    Args:
        f: a path, or a binary file with `write`.
        importer: where modules are found, one or several in their order. The environment by default; the importer of another
            package before it lets objects of that package be packaged again.
        debug: PackagingError shows, for each broken module, a path on which it was reached.

    A source's imports are found without running it. The standard library (but for `sys` and `io`), `torch` and `rushlight` are
    always external. For every other module the first matching pattern applies, and there must be one.
    """

    importer: Importer

    def __init__(
        self, f: str | os.PathLike | BinaryIO, importer: Importer | Sequence[Importer] = sys_importer, debug: bool = False
    ):
        if not isinstance(f, str | os.PathLike) and not hasattr(f, "write"):
            raise TypeError(f"expected a path or a binary file with write, but got {type(f).__name__}")
        self.debug = debug
        self.importer = importer if isinstance(importer, Importer) else OrderedImporter(*importer)
        self._target = f
        self._dependencies = Dependencies(self.importer)
        self._hooks: dict[Action, OrderedDict[int, Hook]] = {
            action: OrderedDict() for action in (Action.EXTERN, Action.MOCK, Action.INTERN)}
        self._file = tempfile.TemporaryFile()
        self._zip = ZipWriter(self._file, PurePath(os.fspath(f)).stem if isinstance(f, str | os.PathLike) else "archive")
        self._release = weakref.finalize(self, _release, self._zip, self._file)
        self._written: set[str] = set()
        self._keys = StorageKeys()
        self._scripts = ScriptWriter(self._write, self._keys)
        self._described: dict[int, tuple[Any, tuple]] = {}
        self._next_id = 0
        self._is_closed = False

    # Content

    def save_source_file(self, module_name: str, file_or_directory: str | os.PathLike, dependencies: bool = True) -> None:
        """Add a file as a module, or a folder as a package; with its dependencies, unless told otherwise."""
        path = Path(file_or_directory)
        if not path.is_dir():
            self.save_source_string(module_name, path.read_text(), path.name == "__init__.py", dependencies)
            return
        for file in sorted(path.rglob("*.py")):
            inner = file.relative_to(path).with_suffix("").parts
            is_package = inner[-1] == "__init__"
            name = ".".join((module_name, *(inner[:-1] if is_package else inner)))
            self.save_source_string(name, file.read_text(), is_package, dependencies)

    def save_source_string(self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True) -> None:
        """Add code as a module. `is_package`: it is a package's `__init__.py`."""
        _check_module_name(module_name)
        self._dependencies.add_source(module_name, src, is_package, dependencies)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Copy a module of the importer. ImportError if it can't be imported."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        _check_module_name(module_name)
        self._dependencies.intern(module_name, dependencies)

    def save_pickle(
        self, package: str, resource: str, obj: Any, dependencies: bool = True, pickle_protocol: int = 3
    ) -> None:
        """Pickle an object into a file of a package, with the modules that it depends on, unless told otherwise.

        Storages are shared between all pickles of a package; scripted modules, and objects whose class has a method
        `__reduce_package__(exporter)`, are handled separately. The pickle has protocol 2, which readers of protocol 3 accept;
        another `pickle_protocol` causes a warning. PicklingError if the object can't be pickled.
        """
        if pickle_protocol not in _PROTOCOLS:
            text = f"packages hold pickles of protocol 2; pickle_protocol={pickle_protocol} changes nothing"
            warnings.warn(text, stacklevel=2)
        filename = _filename(package, resource)
        pickler = PackagePickler(self.importer, self._keys, self._describe)
        pickled = pickler.dump(obj)
        self._write_storages()
        self._write(filename, pickled)
        if dependencies:
            self._dependencies.add_pickle(f"<{package}.{resource}>", package, resource, pickler.names)

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Add a text as a file of a package."""
        if not isinstance(text, str):
            raise TypeError(f"save_text takes a str, got {type(text).__name__}; save_binary takes bytes")
        self._write(_filename(package, resource), text.encode())

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Add bytes as a file of a package."""
        self._write(_filename(package, resource), memoryview(binary))

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Add a module by the patterns that match it."""
        self._dependencies.add(module_name, dependencies)

    def get_unique_id(self) -> str:
        """Return a number that this exporter returns only once, for unique names."""
        self._next_id += 1
        return str(self._next_id - 1)

    # Rules for modules

    def intern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Copy the modules that match into the package. EmptyMatchError at the end if none matches and `allow_empty` is
        False."""
        self._add_pattern(Action.INTERN, include, exclude, allow_empty)

    def extern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Import matching modules from the environment when the package is loaded."""
        self._add_pattern(Action.EXTERN, include, exclude, allow_empty)

    def mock(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Replace matching modules by stubs, which can be imported, and whose objects raise on use."""
        self._add_pattern(Action.MOCK, include, exclude, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Refuse to write a package that depends on a matching module."""
        self._add_pattern(Action.DENY, include, exclude, True)

    def _add_pattern(self, action: Action, include: GlobPattern, exclude: GlobPattern, allow_empty: bool) -> None:
        self._dependencies.patterns.append(Pattern(GlobGroup(include, exclude=exclude), action, allow_empty))

    def register_extern_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(exporter, name)` for each external module that a pattern matched, when the package is closed."""
        return self._register(Action.EXTERN, hook)

    def register_mock_hook(self, hook: Hook) -> RemovableHandle:
        """Return the same for mocked modules."""
        return self._register(Action.MOCK, hook)

    def register_intern_hook(self, hook: Hook) -> RemovableHandle:
        """Return the same for copied modules."""
        return self._register(Action.INTERN, hook)

    def _register(self, action: Action, hook: Hook) -> RemovableHandle:
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    # Queries

    @property
    def dependency_graph(self) -> DiGraph:
        """Return the graph of modules and pickles, with their dependencies."""
        return self._dependencies.graph

    def dependency_graph_string(self) -> str:
        """Return the graph in the language of Graphviz."""
        return self.dependency_graph.to_dot()

    def externed_modules(self) -> list[str]:
        """Return the modules that are imported from the environment, so far."""
        return sorted(self._dependencies.with_action(Action.EXTERN))

    def interned_modules(self) -> list[str]:
        """Return the modules that are copied, so far."""
        return sorted(self._dependencies.with_action(Action.INTERN))

    def mocked_modules(self) -> list[str]:
        """Return the modules that are replaced by stubs, so far."""
        return sorted(self._dependencies.with_action(Action.MOCK))

    def denied_modules(self) -> list[str]:
        """Return the modules that were refused, so far."""
        return sorted(self._dependencies.with_action(Action.DENY))

    def get_rdeps(self, module_name: str) -> list[str]:
        """Return the direct dependents of a module; none for an unknown module."""
        return self.dependency_graph.predecessors(module_name) if module_name in self.dependency_graph else []

    def all_paths(self, src: str, dst: str) -> str:
        """Return all paths from one module to another, in the language of Graphviz. ValueError for an unknown module."""
        return self.dependency_graph.all_paths(src, dst)

    # The end

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, exc_type: type | None, exc_value: object, traceback: object) -> None:
        if exc_type is not None:
            self._discard()
        else:
            self.close()

    def close(self) -> None:
        """Write the file; the exporter can't be used afterwards. PackagingError: a module can't be packaged, or matches no
        pattern. EmptyMatchError: a pattern that must match something has not."""
        if self._is_closed:
            return
        try:
            if any(known.get("error") is not None for known in self.dependency_graph.nodes.values()):
                raise PackagingError(self.dependency_graph, self.debug)
            self._dependencies.check_patterns()
            self._write_modules()
            self._write_description()
            self._zip.close()
            self._write_all()
        finally:
            self._discard()

    def _write_modules(self) -> None:
        for name, known in list(self.dependency_graph.nodes.items()):
            action = known.get("action")
            if known.get("is_pickle"):
                continue
            for hook in list(self._hooks.get(action, {}).values()):
                hook(self, name)
            if action is Action.INTERN:
                self._write_source(name, known["source"], known["is_package"])
            elif action is Action.MOCK:
                self._write_mock_module()
                self._write_source(name, _STUB, known["is_package"])
            elif action is Action.REPACKAGED_MOCK_MODULE:
                self._write_mock_module()

    def _write_mock_module(self) -> None:
        if f"{MOCK_MODULE}.py" not in self._written:
            self._write_source(MOCK_MODULE, inspect.getsource(mocked), False)

    def _write_source(self, name: str, source: str, is_package: bool) -> None:
        self._write(name.replace(".", "/") + ("/__init__.py" if is_package else ".py"), source.encode())

    def _write_description(self) -> None:
        version = self._scripts.finish()
        self._write(EXTERN_MODULES, ("\n".join(self._dependencies.with_action(Action.EXTERN)) + "\n").encode())
        self._write(PYTHON_VERSION, platform.python_version().encode())
        self._write(f"{HIDDEN}/version", f"{max(_OLDEST_VERSION, version)}\n".encode())
        self._write("byteorder", sys.byteorder.encode())
        names, contents = self._zip.fingerprint()
        self._write(f"{HIDDEN}/serialization_id", f"{names:020d}{contents:020d}".encode())

    def _write_all(self) -> None:
        def copy(stream: BinaryIO) -> None:
            self._file.seek(0)
            shutil.copyfileobj(self._file, stream)

        if isinstance(self._target, str | os.PathLike):
            replace_file(self._target, copy)
        else:
            copy(self._target)

    def _discard(self) -> None:
        self._is_closed = True
        self._release()

    # Records

    def _write(self, name: str, data: bytes | memoryview) -> None:
        if self._is_closed:
            raise ValueError("the PackageExporter is closed, and nothing can be added to its package")
        if name in self._written:
            raise ValueError(f"Tried to write file '{name}', but it already exists in this archive.")
        self._written.add(name)
        self._zip.write(name, data)

    def _write_storages(self) -> None:
        for name, data in self._keys.unwritten():
            self._write(name, data)

    def _describe(self, value: Any) -> tuple | None:
        """Return the persistent id of an object with its own pickling: its recipe, the same in all pickles."""
        if isinstance(value, ScriptFunction):
            raise PicklingError("ScriptFunction cannot be pickled; make it the method of a scripted module")
        is_script = isinstance(value, ScriptModule)
        if not is_script and not hasattr(type(value), "__reduce_package__"):
            return None
        if id(value) not in self._described:
            reduced = (UNPACK_SCRIPT, (self._scripts.add(value),)) if is_script else value.__reduce_package__(self)
            self._described[id(value)] = (value, ("reduce_package", len(self._described), *reduced))
        return self._described[id(value)][1]


def _release(archive: ZipWriter, file: BinaryIO) -> None:
    archive.close()
    file.close()


def _filename(package: str, resource: str) -> str:
    """Return the record of a resource. ValueError for an invalid file name or package name."""
    if PurePath(resource).name != resource or "\\" in resource or "\0" in resource:
        raise ValueError(f"'{resource}' must be only a file name")
    _check_module_name(package)
    return f"{package.replace('.', '/')}/{resource}"


def _check_module_name(name: str) -> None:
    if not name or any(not part or set(part) & set("/\\\0") for part in name.split(".")):
        raise ValueError(f"{name!r} is not the name of a module or package, whose parts dots separate")
