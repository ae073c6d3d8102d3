"""Express the results and side effects of scripted code by native code's outputs.


In: values at the end of a capture, which contain fake tensors and Symbols. Out: the tensors that native code is to return,
without duplicates, and templates of the values and of the changes that a call makes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.compiler.scripted.readers import Reader
from rushlight.compiler.scripted.templates import Items, Output, Read, Template, Value
from rushlight.compiler.scripted.world import Symbol, World
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject


@dataclass(frozen=True, eq=False)
class Change:
    """A change of a container: if `grows`, the contents are appended, otherwise they replace the old ones."""

    reader: Reader
    grows: bool
    contents: Items


@dataclass(frozen=True, eq=False)
class Assignment:
    """An assignment to an attribute."""

    owner: Reader
    name: str
    value: Template


class Results:
    """Collects `outputs`: the tensors, and ints of symbolic sizes, that native code is to return."""

    def __init__(self, world: World):
        self.world = world
        self.outputs: list[Tensor | SymInt] = []
        self._places: dict[int, int] = {}
        self._items: dict[int, Items] = {}

    def template(self, value: object) -> Template:
        """Return the template of a value."""
        if isinstance(value, Tensor):
            return self._add_output(id(value._impl), value)
        if type(value) is SymInt:
            return self._add_output(hash(value), value)
        if type(value) is Symbol:
            return Read(value.read)
        container = self.world.containers.get(id(value))
        if container is not None:  # the container existed before the capture; `changes` has its new contents
            return Read(container.read)
        if isinstance(value, list | dict | tuple):
            return self._container_template(value)
        if isinstance(value, ScriptObject) and not isinstance(value, ExtensionObject):
            if self.world.is_outside(value):
                return Read(self.world.reader_of(value))
            return self._fill_items(value, value.type, value.slots)
        return Value(value)

    def contents(self, value: list | dict) -> Items:
        """Return the template of a container's contents, also for a container that existed before."""
        return self._container_template(value)

    def _add_output(self, key: int, value: Tensor | SymInt) -> Output:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.outputs)
            self.outputs.append(value)
        return Output(place, type(value) is SymInt)

    def _container_template(self, value: list | tuple | dict) -> Items:
        return self._fill_items(value, type(value), value)

    def _fill_items(self, value: object, kind: object, contents: list | tuple | dict) -> Items:
        found = self._items.get(id(value))
        if found is None:
            keys = list(contents) if isinstance(contents, dict) else None
            found = self._items[id(value)] = Items(kind, len(self._items), keys, [])
            items = contents.values() if isinstance(contents, dict) else contents
            found.items.extend([self.template(item) for item in items])
        return found

    def changes(self) -> list[Change]:
        """Return the changes of containers that existed before."""
        changed = [each for each in self.world.containers.values() if each.is_changed]
        return [Change(each.read, each.grows, self.contents(each.shadow)) for each in changed]

    def assignments(self) -> list[Assignment]:
        """Return the assignments to attributes."""
        world = self.world
        return [
            Assignment(each.read_owner, each.name, self.template(world.get(each.owner, each.name)))
            for each in world.written.values()
        ]  # fmt: skip
