"""TorchScript's first format, of torch 1.0 to 1.3: `model.json` describes modules and tensors, `tensors/` has their bytes.

In: the records of an archive with a model.json, which holds a ModelDef of torch.proto as JSON: fields in camel case, 64-bit
integers as text, defaults left out. Out: the tensors, and the object of the main module. Stage: jit, loading.
"""

from __future__ import annotations

import ast
import json
from functools import partial
from typing import Any

from rushlight.core.dtype import bfloat16, bool_, float16, float32, float64, int8, int16, int32, int64, uint8
from rushlight.core.tensor import Tensor
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.serialization.archive import MAX_TEXT, Archive
from rushlight.jit.serialization.importer import ImportedFunction, Importer, split_file
from rushlight.jit.serialization.module_objects import fill_module, module_object
from rushlight.jit.serialization.unpickling import Conformer, unpickle
from rushlight.jit.types.kinds import BOOL, TENSOR, ClassType
from rushlight.serialization import rebuild
from rushlight.serialization.allowlist import StorageKind
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.storages import MapLocation, StorageTable
from rushlight.serialization.unpickler import MAX_PICKLE_BYTES

_TENSORS = "tensors/"
_DTYPES = {
    "FLOAT": float32, "DOUBLE": float64, "FLOAT16": float16, "BFLOAT16": bfloat16, "INT64": int64, "INT32": int32,
    "INT16": int16, "INT8": int8, "UINT8": uint8, "BYTE": uint8, "BOOL": bool_,
}  # fmt: skip


class FirstFormat:
    """One archive of the first format. `tensors` is the table that modules and code (`CONSTANTS.c0`) index."""

    def __init__(self, archive: Archive, importer: Importer, map_location: MapLocation):
        self.archive = archive
        self.importer = importer
        self.storages = StorageTable(partial(archive.storage, _TENSORS.removesuffix("/")), map_location)
        self.model = _parse_model(archive.text("model.json"))
        self.tensors = tuple(map(self._read_tensor, _read_many(self.model, "tensors")))
        self.count = 0
        self.attributes: list | None = None

    def main_module(self) -> ScriptObject:
        """Return the object of the main module, with all its submodules."""
        if not isinstance(self.model.get("mainModule"), dict):
            raise CheckpointError("model.json describes no mainModule")
        return self._read_module(self.model["mainModule"])

    def _read_tensor(self, described: dict) -> Tensor:
        named = _read_text(described, "dataType")
        kind = _DTYPES.get(named)
        if kind is None:
            raise CheckpointError(f"model.json has a tensor of the type {named[:50]!r}, which is unknown")
        key = _read_text(described.get("data"), "key")
        record = self.archive.records.get(self.archive.root + key)
        if not key.startswith(_TENSORS) or record is None:
            raise CheckpointError(f"model.json has a tensor in the record {key[:100]!r}, which is not there")
        count = record.size // kind.itemsize
        place = _read_text(described, "device", "cpu")
        storage = self.storages.persistent_load(
            ("storage", StorageKind(kind.name, kind), key.removeprefix(_TENSORS), place, count)
        )
        sizes, strides = _read_integers(described, "dims"), _read_integers(described, "strides")
        needs_grad = described.get("requiresGrad", False) is True
        return rebuild.make_tensor(storage.untyped(), kind, _read_integer(described, "offset"), sizes, strides, needs_grad)

    # Read modules

    def _read_module(self, described: dict) -> ScriptObject:
        """Return a module: a new type with a generated name, and its object."""
        name = _read_text(described, "name", "module")
        kind = ClassType(f"__torch__.___torch_mangle_{self.count}.{name if name.isidentifier() else 'Module'}", is_module=True)
        self.count += 1
        values: dict[str, object] = {}
        for each in _read_many(described, "parameters"):
            is_buffer = each.get("isBuffer", False) is True
            value, flags = self._tensor_by_number(each), (not is_buffer, is_buffer)
            self._add_attribute(kind, values, _read_text(each, "name"), TENSOR, value, flags)
        for each in _read_many(described, "attributes"):
            wanted = self.importer.parse_type(_read_text(each, "type"))
            self._add_attribute(kind, values, _read_text(each, "name"), wanted, self._read_attribute(each, wanted))
        for each in _read_many(described, "submodules"):
            child = self._read_module(each)
            self._add_attribute(kind, values, _read_text(each, "name"), child.type, child)
        if "training" not in kind.attributes:
            self._add_attribute(kind, values, "training", BOOL, True)
        if "getStateAttributeId" in described:
            raise CheckpointError(f"module '{name[:100]}' restores itself by __setstate__, which is not supported in this "
                                  "old format; load and save the archive with torch 1.4")  # fmt: skip
        self._add_methods(kind, described.get("torchscriptArena"))
        made = module_object(kind)
        fill_module(made, values)
        return made

    def _add_attribute(
        self, kind: ClassType, values: dict[str, object], name: str, wanted: Any, value: object,
        flags: tuple[bool, bool] = (False, False),
    ) -> None:  # fmt: skip
        if not name or name in kind.attributes:
            raise CheckpointError(f"model.json has a module with two attributes '{name[:100]}', or one without a name")
        kind.add_attribute(name, wanted, *flags)
        values[name] = value

    def _tensor_by_number(self, described: dict) -> Tensor:
        number = _read_integer(described, "tensorId")
        if not 0 <= number < len(self.tensors):
            raise CheckpointError(f"model.json refers to tensor {number}, and there are {len(self.tensors)}")
        return self.tensors[number]

    def _read_attribute(self, described: dict, wanted: Any) -> object:
        if self.attributes is None:
            data = self.archive.bytes("attributes.pkl", MAX_PICKLE_BYTES)
            values = unpickle(
                data, self.storages.persistent_load, self.importer.find_type, self.importer.parse_type, self.tensors
            )
            if not isinstance(values, list | tuple):
                raise CheckpointError(f"attributes.pkl holds a {type(values).__name__}, and a list is expected")
            self.attributes = list(values)
        number = _read_integer(described, "id")
        if not 0 <= number < len(self.attributes):
            raise CheckpointError(f"model.json refers to attribute {number}, and there are {len(self.attributes)}")
        return Conformer().conform(self.attributes[number], wanted, f"attribute '{_read_text(described, 'name')[:100]}'")

    def _add_methods(self, kind: ClassType, arena: object) -> None:
        if arena is None:
            return
        name = _read_text(arena, "key")
        text = self.archive.text(name, MAX_TEXT)
        file = split_file(name, text, None)
        for method in file.chunks:
            node, context = file.parse(method)
            if not isinstance(node, ast.FunctionDef) or not node.args.args:
                raise CheckpointError(f"{name}: '{method}' is no method, which takes an object first")
            kind.methods[method] = ImportedFunction(f"{kind.name}.{method}", self.importer, node, context, kind)


# Read fields of model.json


def _parse_model(text: str) -> dict:
    try:
        model = json.loads(text)
    except ValueError as error:
        raise CheckpointError(f"model.json is no JSON: {error}") from None
    if not isinstance(model, dict):
        raise CheckpointError("model.json is no object")
    return model


def _read_many(described: dict, name: str) -> list[dict]:
    found = described.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise CheckpointError(f"model.json has a field '{name}' that is no list of objects")
    return found


def _read_text(described: object, name: str, default: str | None = None) -> str:
    found = described.get(name, default) if isinstance(described, dict) else None
    if not isinstance(found, str):
        raise CheckpointError(f"model.json lacks a text '{name}'")
    return found


def _read_integer(described: dict, name: str) -> int:
    return _read_number(described.get(name, 0), name)


def _read_number(found: object, name: str) -> int:
    if isinstance(found, str) and len(found) < 20 and found.isascii() and found.removeprefix("-").isdigit():
        return int(found)
    if type(found) is not int:
        raise CheckpointError(f"model.json has a field '{name}' that is no integer")
    return found


def _read_integers(described: dict, name: str) -> tuple[int, ...]:
    found = described.get(name, [])
    if not isinstance(found, list):
        raise CheckpointError(f"model.json has a field '{name}' that is no list")
    return tuple(_read_number(each, name) for each in found)
