"""Checks of values that a program assumes."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.scripted.readers import Arguments, Reader
from rushlight.core.tensor import Tensor
from rushlight.jit.runtime.objects import ScriptObject


def same_value(one: object, other: object) -> bool:
    """Return whether plain values have equal types and values; floats are compared bitwise."""
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, Tensor):
        return False
    return one.hex() == other.hex() if isinstance(one, float) else one == other


def entry_of(owner: ScriptObject, name: str) -> tuple[dict, str, object]:
    """Return the entry of an object's attribute: the dict, the name, and the value."""
    slots = owner.slots
    return (slots, name, slots[name]) if isinstance(slots, dict) else slots.entry(name)


def shape_of(value: list | dict | tuple) -> tuple:
    """Return a container's type with its length or a dict's keys."""
    return type(value), tuple(value) if isinstance(value, dict) else len(value)


def has_kind(value: object, kind: object) -> bool:
    """Return whether a value is an object of a type, or a container of a shape."""
    if isinstance(kind, tuple):
        return type(value) is kind[0] and shape_of(value) == kind
    return isinstance(value, ScriptObject) and value.type is kind


def are_apart(readers: Sequence[Reader], given: Arguments) -> bool:
    """Return whether a call's values in all places are different objects."""
    return len({id(read(given)) for read in readers}) == len(readers)
