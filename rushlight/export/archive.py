"""`.pt2` files: `save` and `load` of exported programs.

A file is a zip archive without compression: `format` and `version` (text), `program.json` (the graph, its signature, trees,
symbols and ranges), `weights.safetensors` (parameters, buffers, constants, example inputs), and the user's extra files, under
`extra/`. Reading one runs no code. PyTorch's own `.pt2` files have another layout.
"""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

from rushlight.core.device import present_device
from rushlight.core.dtype import complex128
from rushlight.core.layout import contiguous_format
from rushlight.core.tensor import Tensor
from rushlight.export.encoding import FormatError
from rushlight.export.exported_program import ExportedProgram
from rushlight.export.records import read_program, tensors_of, write_program
from rushlight.ops.registry import aten
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.safetensors import load_safetensors, to_safetensors
from rushlight.serialization.saving import replace_file

view_as_real, view_as_complex = aten("view_as_real"), aten("view_as_complex")
FORMAT, VERSION = "rushlight.export", 1
_EXTRA = "extra/"
# The exceptions that damaged or forged content can cause.
_FAILURES = (
    FormatError, KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError, OverflowError, RuntimeError,
    RecursionError, zipfile.BadZipFile, EOFError, NotImplementedError,
)  # fmt: skip


def save(
    ep: ExportedProgram, f: str | os.PathLike | BinaryIO, *, extra_files: Mapping[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
) -> None:  # fmt: skip
    """Write an exported program to a file, with further texts or bytes by name. A file at a path is replaced when complete.

    TypeError: not an exported program, or one with content that a file cannot hold. `opset_version` has no effect, and warns.
    """
    _warn_of(opset_version=opset_version)
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead.")
    content = _archive(ep, extra_files or {})
    if isinstance(f, str | os.PathLike):
        replace_file(f, lambda stream: stream.write(content))
    else:
        f.write(content)


def _archive(program: ExportedProgram, extra: Mapping[str, Any]) -> bytes:
    tensors, described = _without_sharing(tensors_of(program))
    text = json.dumps({"program": write_program(program), "tensors": described})
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in (("format", FORMAT), ("version", str(VERSION)), ("program.json", text)):
            archive.writestr(name, content)
        archive.writestr("weights.safetensors", to_safetensors(tensors))
        for name, content in extra.items():
            archive.writestr(_EXTRA + name, content)
    return stream.getvalue()


def _without_sharing(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, list]]:
    """Return the tensors to write, without duplicates, and for each name [name in the file, whether complex128, requires
    gradients], and a GPU's tensors' device."""
    written: dict[str, Tensor] = {}
    first: dict[tuple, str] = {}
    described = {}
    for name, tensor in tensors.items():
        view = (tensor._impl.storage, tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        if view not in first:
            first[view] = name
            written[name] = _plain(tensor)
        where = [] if tensor.device.type == "cpu" else [str(tensor.device)]
        described[name] = [first[view], tensor.dtype is complex128, tensor.requires_grad, *where]
    return written, described


def _warn_of(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            warnings.warn(f"{name} has no effect: files of this library have no versions of operators", stacklevel=3)


def _plain(tensor: Tensor) -> Tensor:
    """Return a tensor in a form that safetensors supports: with its own memory, and no complex128."""
    own = tensor.detach().clone(memory_format=contiguous_format)
    return view_as_real(own).clone() if own.dtype is complex128 else own


def load(
    f: str | os.PathLike | BinaryIO, *, extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:  # fmt: skip
    """Return the exported program of a file that `save` wrote. The values of `extra_files` are filled in by its keys, as text.

    RuntimeError, naming the file: it is damaged, of another format, or of a later version. FileNotFoundError: there is none.
    Classes of `register_dataclass` among the inputs must be registered again before. `expected_opset_version` has no effect,
    and warns.
    """
    _warn_of(expected_opset_version=expected_opset_version)
    name = os.fspath(f) if isinstance(f, str | os.PathLike) else getattr(f, "name", "the given stream")
    content = f.read() if not isinstance(f, str | os.PathLike) else _content(f)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _read_program(archive, extra_files)
    except _FAILURES as error:
        raise CheckpointError(f"{name}: is not a valid exported program: {type(error).__name__}: {error}"[:500]) from error


def _content(path: str | os.PathLike) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _read_program(archive: zipfile.ZipFile, extra: dict[str, Any] | None) -> ExportedProgram:
    names = archive.namelist()
    if "format" not in names or _record(archive, "format").decode() != FORMAT:
        of_torch = any("archive_format" in name for name in names)
        hint = "; PyTorch wrote it, whose layout is another one" if of_torch else ""
        raise FormatError(f"no file of torch.export.save's{hint}")
    version = int(_record(archive, "version"))
    if version != VERSION:
        raise FormatError(f"version {version} of the format, while this library reads version {VERSION}")
    found = json.loads(_record(archive, "program.json"))
    stored = load_safetensors(io.BytesIO(_record(archive, "weights.safetensors")))
    program = read_program(found["program"], _restore_tensors(stored, found["tensors"]))
    for name in extra or ():
        if _EXTRA + name in names:
            extra[name] = _record(archive, _EXTRA + name).decode()
    return program


def _record(archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise FormatError(f"{name} is compressed")  # save never compresses; refusing compressed content prevents zip bombs
    return archive.read(info)


def _restore_tensors(stored: dict[str, Tensor], described: dict[str, list]) -> dict[str, Tensor]:
    """Return tensors by name; names of one tensor share it again."""
    made: dict[str, Tensor] = {}
    for source, is_complex, requires_grad, *where in described.values():
        if source not in made:
            tensor = stored[source].clone()
            tensor = view_as_complex(tensor).clone() if is_complex else tensor
            made[source] = (tensor.to(present_device(*where)) if where else tensor).requires_grad_(bool(requires_grad))
    return {name: made[source] for name, (source, *_) in described.items()}
