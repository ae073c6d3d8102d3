"""The pickles of an archive: objects of scripted classes, modules, enumerations, typed lists and dicts, tensors.

In: a record, a function that finds types, and one that reads storages. Out: one object, with each attribute of its declared
type. Nothing that a pickle names is imported or called, except the `__setstate__` of a scripted class. Stage: jit, loading.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from rushlight.core.tensor import Tensor
from rushlight.jit.operators.extensions import restore, state_types
from rushlight.jit.runtime.executor import run_function
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject
from rushlight.jit.runtime.type_checks import is_instance
from rushlight.jit.serialization.module_objects import fill_module, module_object
from rushlight.jit.types.extensions import ExtensionType
from rushlight.jit.types.kinds import (
    BOOL,
    FLOAT,
    INT,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
)
from rushlight.jit.types.relations import is_subtype, members_of
from rushlight.serialization.allowlist import find_global
from rushlight.serialization.errors import UnpicklingError
from rushlight.serialization.unpickler import Constructor, Unpickler

_MAX_TYPE_TEXT = 4000
_TAGS = "torch.jit._pickle"
FindType = Callable[[str], Type | None]


class ClassGlobal:
    """A scripted class that a pickle names."""

    __slots__ = ("kind",)

    def __init__(self, kind: ClassType):
        self.kind = kind


class EnumGlobal:
    """An enumeration that a pickle names."""

    __slots__ = ("kind",)

    def __init__(self, kind: EnumType):
        self.kind = kind


class ArchiveUnpickler(Unpickler):
    """One pickle of an archive. `find_type` finds the types of its code, `parse_type` reads one from text; `tensors` is the
    table that pickles of the first format index."""

    def __init__(
        self, stream: BinaryIO, end: int, persistent_load: Callable[[Any], Any], find_type: FindType,
        parse_type: Callable[[str], Type], tensors: Sequence[Tensor] = (),
    ):  # fmt: skip
        super().__init__(stream, end, self._find, persistent_load)
        self.find_type = find_type
        self.parse_type = parse_type
        self.tensors = tensors
        self.conformer = Conformer()

    def _find(self, module: str, name: str) -> Any:
        if module == _TAGS and name in _TAG_FUNCTIONS:
            return _TAG_FUNCTIONS[name]
        if module.partition(".")[0] != "__torch__":
            return find_global(module, name)
        kind = self.find_type(f"{module}.{name}")
        if isinstance(kind, ClassType):
            return ClassGlobal(kind)
        if isinstance(kind, EnumType):
            return EnumGlobal(kind)
        raise UnpicklingError(f"the pickle names '{f'{module}.{name}'[:200]}', and the archive's code has no such class")


def unpickle(
    data: bytes, persistent_load: Callable[[Any], Any], find_type: FindType, parse_type: Callable[[str], Type],
    tensors: Sequence[Tensor] = (),
) -> object:  # fmt: skip
    """Return the object in a pickle; UnpicklingError for malformed data."""
    return ArchiveUnpickler(io.BytesIO(data), len(data), persistent_load, find_type, parse_type, tensors).load()


# Check values against types


class Conformer:
    """Checks the types of values, in place: a NamedTuple's values become one. Each pair is checked once."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, Type], object] = {}
        self.kept: list[object] = []

    def conform(self, value: object, kind: Type, what: str) -> object:
        """Return the value, converted to the type; UnpicklingError, naming `what`, where it does not conform."""
        if isinstance(kind, ListType | DictType | TupleType) and isinstance(value, list | dict | tuple):
            key = (id(value), kind)
            if key not in self.seen:
                self.kept.append(value)
                self.seen[key] = value
                self.seen[key] = self._check_container(value, kind, what)
            return self.seen[key]
        if isinstance(kind, OptionalType):
            return None if value is None else self.conform(value, kind.element, what)
        if isinstance(kind, UnionType):
            return self._check_member(value, kind, what)
        if kind == FLOAT and type(value) is int:
            return float(value)
        fits = isinstance(value, ScriptObject) and is_subtype(value.type, kind) if isinstance(
            kind, ClassType | InterfaceType) else isinstance(kind, FutureType) or is_instance(value, kind)  # fmt: skip
        if not fits:
            raise UnpicklingError(f"{what} is declared as {kind}, and the pickle holds a {_name(value)}")
        return value

    def _check_container(self, value: object, kind: Type, what: str) -> object:
        if isinstance(kind, ListType) and isinstance(value, list):
            for index, item in enumerate(value):
                value[index] = self.conform(item, kind.element, what)
            return value
        if isinstance(kind, DictType) and isinstance(value, dict):
            for key, item in value.items():
                self.conform(key, kind.key, what)
                value[key] = self.conform(item, kind.value, what)
            return value
        if isinstance(kind, TupleType) and isinstance(value, tuple) and len(value) == len(kind.elements):
            parts = [self.conform(item, element, what) for item, element in zip(value, kind.elements, strict=True)]
            return tuple(parts) if kind.python_class is None else kind.python_class(*parts)
        raise UnpicklingError(f"{what} is declared as {kind}, and the pickle holds a {_name(value)}")

    def _check_member(self, value: object, kind: UnionType, what: str) -> object:
        for part in members_of(kind):
            try:
                return self.conform(value, part, what)
            except UnpicklingError:
                continue
        raise UnpicklingError(f"{what} is declared as {kind}, and the pickle holds a {_name(value)}")


def _name(value: object) -> str:
    return value.type.name if isinstance(value, ScriptObject) else type(value).__name__


# Make objects


def _new_object(machine: ArchiveUnpickler) -> None:
    arguments, named = machine.pop(), machine.pop()
    if not isinstance(named, ClassGlobal) or arguments != ():
        machine.fail("makes an object of something other than a scripted class without arguments")
    machine.constructed += 1
    if machine.constructed > 1_000_000:
        machine.fail("makes more than a million objects")
    kind = named.kind
    is_opaque = isinstance(kind, ExtensionType)
    machine.push_container(
        module_object(kind) if kind.is_module else ExtensionObject(kind) if is_opaque else ScriptObject(kind)
    )


def _build_object(machine: ArchiveUnpickler) -> None:
    if len(machine.stack) < 2 or not isinstance(machine.stack[-2], ScriptObject):
        Unpickler.instructions[pickle.BUILD](machine)
        return
    state, target = machine.pop(), machine.top()
    if isinstance(target, ExtensionObject):
        _restore_packed(machine, target, state)
        return
    restore = target.type.methods.get("__setstate__")
    if restore is None:
        _set_attributes(machine, target, state)
        return
    wanted = restore.schema.arguments
    if len(wanted) != 2:
        machine.fail(f"restores a {target.type.name}, whose __setstate__ does not take one argument")
    state = machine.conformer.conform(state, wanted[1].type, f"the state of {target.type.name}")
    if target.type.is_module:
        fill_module(target, {})
    run_function(restore, [target, state])


def _restore_packed(machine: ArchiveUnpickler, target: ExtensionObject, state: object) -> None:
    """Restore packed weights from their state, in any of its formats."""
    kinds = state_types(target)
    what = f"the state of {target.type.name}"
    for kind in kinds[1:]:
        try:
            restore(target, machine.conformer.conform(state, kind, what))
            return
        except UnpicklingError:
            continue
    restore(target, machine.conformer.conform(state, kinds[0], what))


def _set_attributes(machine: ArchiveUnpickler, target: ScriptObject, state: object) -> None:
    kind = target.type
    if type(state) is not dict:
        machine.fail(f"restores a {kind.name} from a {_name(state)}, and its attributes are a dict")
    values = {}
    for name, attribute in kind.attributes.items():
        if name not in state and not isinstance(attribute.type, OptionalType) and str(attribute.type) != "NoneType":
            machine.fail(f"restores a {kind.name} without its attribute '{name}'")
        values[name] = machine.conformer.conform(state.get(name), attribute.type, f"attribute '{name}' of {kind.name}")
    if kind.is_module:
        fill_module(target, values)
    else:
        target.slots.update(values)


def _reduce(machine: ArchiveUnpickler) -> None:
    """Apply a global; an enumeration is applied to a member's value itself, not to a tuple."""
    if len(machine.stack) < 2 or not isinstance(machine.stack[-2], EnumGlobal):
        Unpickler.instructions[pickle.REDUCE](machine)
        return
    value, named = machine.pop(), machine.pop()
    for member in named.kind.python_class:
        if type(value) is type(member.value) and member.value == value:
            machine.stack.append(member)
            return
    machine.fail(f"holds a {named.kind.name} of a value that it does not have")


ArchiveUnpickler.instructions = {
    **Unpickler.instructions, pickle.NEWOBJ: _new_object, pickle.BUILD: _build_object, pickle.REDUCE: _reduce
}  # fmt: skip


# Functions that pickles call


def _restore_type_tag(machine: ArchiveUnpickler, args: tuple) -> object:
    if len(args) != 2 or type(args[1]) is not str or len(args[1]) > _MAX_TYPE_TEXT:
        raise UnpicklingError("restore_type_tag takes a value and the text of its type")
    return machine.conformer.conform(args[0], machine.parse_type(args[1]), "a value with a type tag")


def _tensor_of_id(machine: ArchiveUnpickler, args: tuple) -> Tensor:
    if len(args) != 1 or type(args[0]) is not int or not 0 <= args[0] < len(machine.tensors):
        raise UnpicklingError(f"a pickle refers to a tensor by number, and the archive's table has {len(machine.tensors)}")
    return machine.tensors[args[0]]


def _list_of(kind: Type) -> Callable:
    def build(machine: ArchiveUnpickler, args: tuple) -> object:
        if len(args) != 1 or type(args[0]) is not list:
            raise UnpicklingError("a typed list is made of something other than one list")
        return machine.conformer.conform(args[0], ListType(kind), f"a list of {kind}")

    return build


def _tag_functions() -> dict[str, Constructor]:
    from_kind = {"build_intlist": INT, "build_doublelist": FLOAT, "build_boollist": BOOL, "build_tensorlist": TENSOR}
    made = {name: Constructor(f"{_TAGS}.{name}", _list_of(kind)) for name, kind in from_kind.items()}
    made["build_tensor_from_id"] = Constructor(f"{_TAGS}.build_tensor_from_id", _tensor_of_id)
    made["restore_type_tag"] = Constructor(f"{_TAGS}.restore_type_tag", _restore_type_tag)
    return made


_TAG_FUNCTIONS = _tag_functions()
