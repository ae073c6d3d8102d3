"""Convert values from scripted code to Python: objects become instances of the user's classes, or modules.

In: a result and its type. Out: the Python value. `type_checks.to_script` converts in the other direction.
"""

from __future__ import annotations

from functools import lru_cache

from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.script_class import RecursiveScriptClass
from rushlight.jit.types.kinds import (
    ANY,
    ClassType,
    DictType,
    InterfaceType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
)


def from_script(value: object, kind: Type) -> object:
    """Convert a value of scripted code to Python."""
    return _convert(value) if may_hold_objects(kind) else value


@lru_cache(maxsize=4096)
def may_hold_objects(kind: Type) -> bool:
    """Return whether `from_script` may change values of a type."""
    if kind is ANY or isinstance(kind, ClassType | InterfaceType):
        return True
    holders = ListType | DictType | TupleType | OptionalType | UnionType
    return isinstance(kind, holders) and any(map(may_hold_objects, kind.contained()))


def _convert(value: object) -> object:
    if isinstance(value, ScriptObject):
        return object_to_python(value)
    if isinstance(value, list):
        return [_convert(item) for item in value]
    if isinstance(value, dict):
        return {_convert(key): _convert(item) for key, item in value.items()}
    if isinstance(value, tuple):
        parts = [_convert(item) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def object_to_python(value: ScriptObject) -> object:
    """Return an object as an instance of its Python class; for a module, the module that holds it."""
    owner = getattr(value.slots, "_module", None)
    if owner is not None:
        return owner
    kind = value.type.python_class
    if kind is None:
        return RecursiveScriptClass(value)
    made = kind.__new__(kind)
    for name, attribute in value.type.attributes.items():
        object.__setattr__(made, name, from_script(value.slots[name], attribute.type))
    return made
