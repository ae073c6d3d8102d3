"""`torch._inductor.aoti_compile_and_package` and `aoti_load_package`: an exported program as a library in a `.pt2` file.

In: an `ExportedProgram`. Out: a zip archive with the built library, its weights, and the pytrees of its arguments and results.
A package holds machine code: load only packages that you trust.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.core.pytree import tree_unflatten
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor, from_numpy
from rushlight.deploy.binding import Model, ModelError
from rushlight.deploy.exporting import export
from rushlight.deploy.targets import build_library
from rushlight.export.encoding import decode, decode_tree, encode, encode_tree
from rushlight.export.exported_program import ExportedProgram
from rushlight.export.graph_signature import InputKind
from rushlight.export.unlifted import flatten_inputs

_ROOT = "data/aotinductor/model/"
_NAME = "model"
_MAX_BYTES = 1 << 36  # limit on the bytes that a package unpacks to


def aoti_compile_and_package(
    exported_program: ExportedProgram, *, package_path: str | os.PathLike | None = None,
    inductor_configs: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """Build an exported program as a library, and write it with its weights to a `.pt2` file, whose path is returned.

    `package_path` defaults to a file in a new temporary folder. `inductor_configs` must be empty: no setting changes exported
    code. TypeError for anything but an exported program, ValueError for a suffix other than `.pt2`, NotExportable for operators
    without a native form, CompilerMissing and BuildError where the build fails.
    """
    if not isinstance(exported_program, ExportedProgram):
        raise TypeError(f"aoti_compile_and_package takes an ExportedProgram, got {type(exported_program).__name__}")
    if inductor_configs:
        raise ValueError(f"aoti_compile_and_package: no setting changes exported code, got {', '.join(inductor_configs)}")
    path = Path(tempfile.mkdtemp()) / f"{_NAME}.pt2" if package_path is None else Path(package_path)
    if path.suffix != ".pt2":
        raise ValueError(f"a package's name ends in .pt2, got {path}")
    with tempfile.TemporaryDirectory() as work:
        folder = export(exported_program, (), Path(work) / _NAME, name=_NAME)
        library = build_library(folder, _NAME)
        files = [library, folder / f"{_NAME}.weights", folder / f"{_NAME}.cpp", folder / f"{_NAME}.h"]
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            with zipfile.ZipFile(partial, "w") as archive:
                archive.writestr("archive_format", "pt2")
                archive.writestr(f"{_ROOT}{_NAME}.json", json.dumps(_calling_convention(exported_program)))
                for file in files:
                    archive.write(file, f"{_ROOT}{file.name}")
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    return str(path)


def _calling_convention(program: ExportedProgram) -> dict[str, Any]:
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    inputs: list[Any] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            value = nodes[spec.arg.name].meta.get("val")
            inputs.append(None if isinstance(value, Tensor | SymInt) else [encode(value)])
    trees = {"in_spec": encode_tree(program.call_spec.in_spec), "out_spec": encode_tree(program.call_spec.out_spec)}
    return {**trees, "inputs": inputs}


class AOTICompiledModel:
    """A package's library, with the calling convention of the program that it was built from."""

    def __init__(self, folder: Path):
        described = json.loads((folder / f"{_NAME}.json").read_text())
        self._in_spec, self._out_spec = decode_tree(described["in_spec"]), decode_tree(described["out_spec"])
        self._fixed = [None if each is None else [decode(each[0], {})] for each in described["inputs"]]
        self._model = Model(folder / f"lib{_NAME}.so", _NAME, folder / f"{_NAME}.weights")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the program's results. ValueError for arguments of another structure, RuntimeError for wrong dtypes and
        sizes."""
        leaves = flatten_inputs(self._in_spec, args, kwargs)
        given = []
        for position, (leaf, fixed) in enumerate(zip(leaves, self._fixed, strict=True)):
            if fixed is None:
                given.append(leaf.detach().numpy(force=True) if isinstance(leaf, Tensor) else leaf)
            elif leaf != fixed[0]:
                raise RuntimeError(f"input {position} is {leaf!r}, and was {fixed[0]!r} when the program was exported")
        found = self._model(*given)
        results = found if isinstance(found, tuple) else (found,)
        return tree_unflatten([from_numpy(each) if isinstance(each, np.ndarray) else each for each in results], self._out_spec)


def aoti_load_package(path: str | os.PathLike) -> AOTICompiledModel:
    """Return the callable in a `.pt2` file that `aoti_compile_and_package` wrote here.

    It runs machine code from the file. FileNotFoundError and RuntimeError where the file is missing, is no such package, or was
    built for another kind of machine.
    """
    folder = Path(tempfile.mkdtemp(prefix="rushlight-aoti-"))
    try:
        _unpack(Path(path), folder)
        model = AOTICompiledModel(folder)
    except (OSError, ModelError, LookupError, TypeError, ValueError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, FileNotFoundError) and not Path(path).exists():
            raise
        raise RuntimeError(f"{path} holds no library that runs here: {error}") from error
    weakref.finalize(model, shutil.rmtree, folder, ignore_errors=True)
    return model


def _unpack(path: Path, folder: Path) -> None:
    if not zipfile.is_zipfile(path):
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
        raise RuntimeError(f"{path} is no .pt2 package")
    with zipfile.ZipFile(path) as archive:
        sizes = {each.filename: each.file_size for each in archive.infolist()}
        wanted = [f"{_ROOT}{name}" for name in (f"{_NAME}.json", f"lib{_NAME}.so", f"{_NAME}.weights")]
        missing = [name for name in wanted if name not in sizes]
        if missing:
            raise RuntimeError(f"{path} was not written by aoti_compile_and_package here: it lacks {', '.join(missing)}")
        if sum(sizes[name] for name in wanted) > _MAX_BYTES:
            raise RuntimeError(f"{path} would unpack to more than {_MAX_BYTES} bytes")
        for name in wanted:
            with archive.open(name) as source, (folder / name.rpartition("/")[2]).open("wb") as target:
                shutil.copyfileobj(source, target)
