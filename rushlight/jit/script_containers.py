"""`ScriptList` and `ScriptDict`: lists and dicts that Python and scripted code share, so that each sees the other's writes.

In: a list or dict of values of one type. Out: a container for which `type_checks.to_script` passes the shared values themselves
instead of a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rushlight.jit.annotations import infer_type
from rushlight.jit.compiler import compiler
from rushlight.jit.runtime.objects import SharedContainer
from rushlight.jit.runtime.type_checks import to_script
from rushlight.jit.types.kinds import DictType, ListType


def script_container(values: list | dict) -> ScriptList | ScriptDict:
    """Return a shared container with the values of a list or dict. RuntimeError where they have no common type."""
    kind = infer_type(values, compiler.class_type)
    if kind is None:
        raise RuntimeError(f"Unable to infer type of {type(values).__name__}: its values must be of one type, got {values!r}")
    container = ScriptList if isinstance(values, list) else ScriptDict
    return container(to_script(values, kind), kind)


class ScriptList(SharedContainer):
    """A list that scripted functions change in place. TypeError for values that are not of its elements' type."""

    __slots__ = ()
    type: ListType
    held: list

    def _element(self, value: object) -> object:
        return to_script(value, self.type.element)

    def __getitem__(self, index: int | slice) -> object:
        found = self.held[index]
        return ScriptList(found, self.type) if isinstance(index, slice) else found

    def __setitem__(self, index: int | slice, value: object) -> None:
        self.held[index] = [self._element(each) for each in value] if isinstance(index, slice) else self._element(value)

    def __delitem__(self, index: int) -> None:
        del self.held[index]

    def __contains__(self, value: object) -> bool:
        return self._element(value) in self.held

    def count(self, value: object) -> int:
        """Return how often a value occurs."""
        return self.held.count(self._element(value))

    def remove(self, value: object) -> None:
        """Remove the first occurrence of a value. ValueError where there is none."""
        self.held.remove(self._element(value))

    def append(self, value: object) -> None:
        """Add a value at the end."""
        self.held.append(self._element(value))

    def extend(self, values: Iterable) -> None:
        """Add values at the end; none where one of them is of another type."""
        self.held.extend([self._element(each) for each in values])

    def insert(self, index: int, value: object) -> None:
        """Add a value before an index."""
        self.held.insert(index, self._element(value))

    def pop(self, index: int = -1) -> object:
        """Remove a value and return it."""
        return self.held.pop(index)

    def clear(self) -> None:
        """Remove all values."""
        self.held.clear()


class ScriptDict(SharedContainer):
    """A dict that scripted functions change in place. TypeError for what is written and is not of its types; a lookup with a
    key of another type raises KeyError."""

    __slots__ = ()
    type: DictType
    held: dict

    def _known_key(self, key: object) -> object:
        try:
            return to_script(key, self.type.key)
        except TypeError:
            raise KeyError(key) from None

    def __getitem__(self, key: object) -> object:
        return self.held[self._known_key(key)]

    def __setitem__(self, key: object, value: object) -> None:
        self.held[to_script(key, self.type.key)] = to_script(value, self.type.value)

    def __delitem__(self, key: object) -> None:
        del self.held[to_script(key, self.type.key)]

    def __contains__(self, key: object) -> bool:
        return self._known_key(key) in self.held

    def keys(self) -> Iterator:
        """Return an iterator over the keys."""
        return iter(self.held)

    def items(self) -> Iterator:
        """Return an iterator over pairs of a key and its value."""
        return iter(self.held.items())
