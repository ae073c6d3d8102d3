"""`save`: a ScriptModule or ScriptFunction to an archive that torch loads. The entry of the writing half.

In: a module or function. Out: a zip file of tensors, pickles and code. Stage: jit, saving.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import PurePath
from typing import BinaryIO

from rushlight.core.storage import StorageImpl, UntypedStorage
from rushlight.jit.function import Function
from rushlight.jit.module import ScriptModule
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.schema import Argument, FunctionSchema
from rushlight.jit.script_function import ScriptFunction
from rushlight.jit.serialization.class_printer import Program
from rushlight.jit.serialization.pickling import ArchivePickler
from rushlight.jit.types.kinds import BOOL, ClassType, TupleType
from rushlight.serialization.saving import replace_file
from rushlight.serialization.zip_writer import ZipWriter

_OLDEST_VERSION = 3
_CHANGED = {"aten::div": 4, "aten::div_": 4, "aten::full": 5, "aten::linspace": 8, "aten::logspace": 9, "aten::gelu": 10}
"""The version of archives in which an operator got the meaning that it has now."""


def save(m: ScriptModule | ScriptFunction, f: str | os.PathLike | BinaryIO, _extra_files: dict | None = None) -> None:
    """Write an archive that torch.jit.load and rushlight.jit.load read. A function becomes the `forward` of a module.

    `_extra_files` are further records: names to str or bytes. A path is replaced only when the file is complete. RuntimeError
    for content that an archive can't hold, such as functions left to Python.
    """
    if not isinstance(m, ScriptModule | ScriptFunction):
        raise TypeError(f"save takes a ScriptModule or ScriptFunction, got {type(m).__name__}; script or trace it before")
    parts = _Parts(_root_of(m))
    if isinstance(f, str | os.PathLike):
        path = PurePath(os.fspath(f))
        if not os.path.isdir(path.parent):
            raise RuntimeError(f"Parent directory {path.parent} does not exist.")
        root = path.stem or "archive"
        replace_file(f, lambda stream: parts.write(stream, root, _extra_files or {}))
    elif hasattr(f, "write"):
        parts.write(f, "archive", _extra_files or {})
    else:
        raise TypeError(f"expected a path or a binary file with write, but got {type(f).__name__}")


def save_to_buffer(m: ScriptModule | ScriptFunction, _extra_files: dict | None = None) -> bytes:
    """Return the bytes of an archive."""
    buffer = io.BytesIO()
    save(m, buffer, _extra_files)
    return buffer.getvalue()


def _root_of(m: ScriptModule | ScriptFunction) -> ScriptObject:
    return m._c if isinstance(m, ScriptModule) else _wrap_function(m._function)


def _wrap_function(function: Function) -> ScriptObject:
    """Return a module whose `forward` is a function."""
    kind = ClassType("__torch__.PlaceholderModule", is_module=True)
    kind.add_attribute("training", BOOL)
    graph = function.graph.copy()
    graph.block.insert_input(0, "self", kind)
    schema = function.schema
    arguments = (Argument("self", kind), *schema.arguments)
    forward = Function(f"{kind.name}.forward", graph)
    forward.set_graph(graph, FunctionSchema(forward.name, "", arguments, schema.returns))
    kind.methods["forward"] = forward
    made = ScriptObject(kind)
    made.slots["training"] = True
    return made


def version_of(program: Program) -> int:
    """Return the oldest archive version in which a program's operators have their current meaning."""
    return max([_OLDEST_VERSION, *(_CHANGED[name] for name in program.operators if name in _CHANGED)])


class _Parts:
    """The parts of an archive, ready to be written."""

    def __init__(self, root: ScriptObject):
        self.program = Program()
        self.program.add(root.type)
        data = ArchivePickler(self.program.types)
        self.data, self.storages = data.dump_typed(root, root.type), data.storages
        self.program.finish()  # adds classes that no code names, such as those of objects behind an interface
        self.constants, self.constant_storages = self._pickle_constants()

    def _pickle_constants(self) -> tuple[bytes, list[StorageImpl]]:
        held = self.program.constants.values
        pickler = ArchivePickler(self.program.types)
        kind = TupleType(tuple(kind for _, kind in held))
        return pickler.dump_typed(tuple(value for value, _ in held), kind), pickler.storages

    def write(self, stream: BinaryIO, root: str, extra_files: dict) -> None:
        """Write all records."""
        writer = ZipWriter(stream, root)
        for name, text in extra_files.items():
            writer.write(f"extra/{name}", text.encode() if isinstance(text, str) else bytes(text))
        for folder, storages in (("data", self.storages), ("constants", self.constant_storages)):
            for key, storage in enumerate(storages):
                writer.write(f"{folder}/{key}", UntypedStorage(storage).cpu().numpy().data)
        writer.write("data.pkl", self.data)
        writer.write("constants.pkl", self.constants)
        debug = self.program.debug_files()
        for name, text in self.program.files().items():
            writer.write(f"code/{name}", text.encode())
            writer.write(f"code/{name}.debug_pkl", debug[name])
        writer.write("version", f"{version_of(self.program)}\n".encode())
        writer.write("byteorder", sys.byteorder.encode())
        names, contents = writer.fingerprint()
        writer.write(".data/serialization_id", f"{names:020d}{contents:020d}".encode())
        writer.close()
