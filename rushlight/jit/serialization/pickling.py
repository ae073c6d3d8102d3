"""Pickle objects for an archive, in torch's TorchScript format, with the types of lists and dicts.

In: a value and its type. Out: pickle bytes of protocol 2, and the storages that it refers to. Stage: jit, saving.
"""

from __future__ import annotations

import enum
import pickle

from rushlight.core.tensor import Tensor
from rushlight.core.wrapper_subclasses import is_constant_of_graphs
from rushlight.jit.constants import ENUM_TYPES
from rushlight.jit.operators.extensions import state_of
from rushlight.jit.runtime.executor import run_function
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject
from rushlight.jit.runtime.type_checks import is_instance
from rushlight.jit.serialization.code_names import TypeTable
from rushlight.jit.types.kinds import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    ClassType,
    DictType,
    FutureType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
)
from rushlight.jit.types.relations import members_of
from rushlight.serialization.errors import PicklingError
from rushlight.serialization.pickler import Pickler, write_plain_tensor

_TAGS = "torch.jit._pickle"
_LISTS = {INT: "build_intlist", FLOAT: "build_doublelist", BOOL: "build_boollist"}


class ArchivePickler(Pickler):
    """Writes one value of a type; classes have the names of `types`."""

    def __init__(self, types: TypeTable):
        super().__init__()
        self.types = types

    def dump_typed(self, value: object, kind: Type) -> bytes:
        """Return the pickle of a value; RuntimeError for values that archives can't hold."""
        self.out += pickle.PROTO + b"\x02"
        try:
            self.save_typed(value, kind)
        except PicklingError as error:
            raise RuntimeError(str(error)) from error
        except RecursionError:
            raise RuntimeError("the object is nested too deeply to be saved") from None
        self.out += pickle.STOP
        return bytes(self.out)

    def save_typed(self, value: object, kind: Type) -> None:
        """Write a value, or a reference if it was written before."""
        if isinstance(kind, OptionalType):
            kind = kind.element
        if isinstance(kind, UnionType) or kind is ANY:
            kind = next((part for part in members_of(kind) if part is not ANY and is_instance(value, part)), kind)
        if id(value) in self.memo and isinstance(value, Tensor | list | dict | ScriptObject):
            self._write_get(self.memo[id(value)])
        elif isinstance(value, Tensor) and is_constant_of_graphs(type(value)):
            self.save(value)
        elif isinstance(value, Tensor):
            write_plain_tensor(self, value)
            self.memoize(value)
        elif isinstance(value, ScriptObject):
            self._save_object(value)
        elif isinstance(value, enum.Enum):
            self._save_enum(value)
        elif isinstance(value, complex):
            self.write_call("builtins", "complex", (value.real, value.imag))
        elif isinstance(kind, ListType) and isinstance(value, list):
            self._save_list(value, kind)
        elif isinstance(kind, DictType) and isinstance(value, dict):
            self._save_dict(value, kind)
        elif isinstance(kind, TupleType) and isinstance(value, tuple):
            self._save_typed_tuple(value, kind)
        elif isinstance(kind, FutureType) or kind is ANY:
            raise PicklingError(f"a {type(value).__name__} of type {kind} can't be saved in an archive")
        else:
            self.save(value)

    def _save_typed_tuple(self, value: tuple, kind: TupleType) -> None:
        if not value:
            self.out += pickle.EMPTY_TUPLE
            return
        self.out += pickle.MARK
        for item, element in zip(value, kind.elements, strict=True):
            self.save_typed(item, element)
        self.out += pickle.TUPLE

    def _save_items(self, value: list, kind: ListType) -> None:
        self.out += pickle.EMPTY_LIST + pickle.MARK
        for item in value:
            self.save_typed(item, kind.element)
        self.out += pickle.APPENDS

    def _save_list(self, value: list, kind: ListType) -> None:
        name = _LISTS.get(kind.element)
        if name is not None:
            self.write_call(_TAGS, name, (lambda: self._save_items(value, kind),))
        else:
            self.write_call(_TAGS, "restore_type_tag", (lambda: self._save_items(value, kind), self.types.text(kind)))
        self.memoize(value)

    def _save_dict(self, value: dict, kind: DictType) -> None:
        self.write_call(_TAGS, "restore_type_tag", (lambda: self._save_pairs(value, kind), self.types.text(kind)))
        self.memoize(value)

    def _save_pairs(self, value: dict, kind: DictType) -> None:
        self.out += pickle.EMPTY_DICT + pickle.MARK
        for key, item in value.items():
            self.save_typed(key, kind.key)
            self.save_typed(item, kind.value)
        self.out += pickle.SETITEMS

    def _save_enum(self, value: enum.Enum) -> None:
        module, _, name = self.types.name_of(ENUM_TYPES[type(value)]).rpartition(".")
        self.write_global(module, name)
        self.save(value.value)
        self.out += pickle.REDUCE

    def _save_object(self, value: ScriptObject) -> None:
        kind = value.type
        module, _, name = self.types.name_of(kind).rpartition(".")
        self.write_global(module, name)
        self.out += pickle.EMPTY_TUPLE + pickle.NEWOBJ
        if isinstance(value, ExtensionObject):
            self.save_typed(*state_of(value))
            self.out += pickle.BUILD
            self.memoize(value)
            return
        # Only a __getstate__ that the user exported is compiled; nn.Module's own is plain Python.
        get_state = kind.methods.get("__getstate__")
        if get_state is not None and "__setstate__" in kind.methods:
            self.save_typed(run_function(get_state, [value]), get_state.schema.return_type)
        else:
            self._save_attributes(value, kind)
        self.out += pickle.BUILD
        self.memoize(value)

    def _save_attributes(self, value: ScriptObject, kind: ClassType) -> None:
        self.out += pickle.EMPTY_DICT + pickle.MARK
        for name, attribute in kind.attributes.items():
            if name not in value.slots:
                raise RuntimeError(f"attribute '{name}' of a {kind.name} has no value, so that the object can't be saved")
            self.save(name)
            self.save_typed(value.slots[name], attribute.type)
        self.out += pickle.SETITEMS
