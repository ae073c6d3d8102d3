"""How the results of scripted code are put together again from what native code gives.

In: values at the end of a capture, with fake tensors and Symbols in them. Out: the tensors that native code is to give, each
once, and a function that makes the values of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.world import Arguments, Symbol, World
from rushlight.core.tensor import Tensor
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject

Maker = Callable[[Sequence[Tensor], Arguments], object]
"""A value of a call, made of native code's outputs and the call's arguments."""


class Results:
    """Collects `outputs`: the tensors that native code is to give."""

    def __init__(self, world: World):
        self.world = world
        self.outputs: list[Tensor] = []
        self._places: dict[int, int] = {}

    def maker(self, value: object) -> Maker:
        """What makes a value."""
        if isinstance(value, Tensor):
            return self._tensor(value)
        if type(value) is Symbol:
            return lambda outputs, given: value.read(given)
        container = self.world.containers.get(id(value))
        if container is not None:  # one that was there before: its contents are put back beforehand
            return lambda outputs, given: container.read(given)
        if isinstance(value, list | tuple | dict):
            return self._container(value)
        if isinstance(value, ScriptObject) and not isinstance(value, ExtensionObject):
            if not self.world.is_outside(value):
                raise Unsupported("an object that the code makes and gives away")
            read = self.world.reader_of(value)
            return lambda outputs, given: read(given)
        return lambda outputs, given: value

    def contents(self, value: list | dict) -> Maker:
        """What makes a container anew, whoever holds it."""
        return self._container(value)

    def _tensor(self, value: Tensor) -> Maker:
        place = self._places.get(id(value._impl))
        if place is None:
            place = self._places[id(value._impl)] = len(self.outputs)
            self.outputs.append(value)
        return lambda outputs, given: outputs[place]

    def _container(self, value: list | tuple | dict) -> Maker:
        if isinstance(value, dict):
            pairs = [(key, self.maker(item)) for key, item in value.items()]
            return lambda outputs, given: {key: make(outputs, given) for key, make in pairs}
        makers = [self.maker(item) for item in value]
        if isinstance(value, list):
            return lambda outputs, given: [make(outputs, given) for make in makers]
        kind = type(value)
        if hasattr(kind, "_fields"):
            return lambda outputs, given: kind(*[make(outputs, given) for make in makers])
        return lambda outputs, given: tuple([make(outputs, given) for make in makers])


class Effects:
    """What a call puts into objects, lists and dicts after native code has run: all is made before anything is changed."""

    def __init__(self, world: World, results: Results):
        self.attributes = [
            (attribute, results.maker(world.get(attribute.owner, attribute.name))) for attribute in world.written.values()
        ]
        changed = [each for each in world.containers.values() if each.is_changed]
        self.containers = [(each.read, results.contents(each.shadow)) for each in changed]

    def apply(self, outputs: Sequence[Tensor], arguments: Arguments) -> None:
        """Put the values of a call where they belong."""
        contents = [(read(arguments), make(outputs, arguments)) for read, make in self.containers]
        values = [(attribute.read_owner(arguments), attribute.name, make(outputs, arguments)) for attribute, make in self.attributes]
        for target, content in contents:
            if isinstance(target, list):
                target[:] = content
            else:
                target.clear()
                target.update(content)
        for owner, name, value in values:
            owner.slots[name] = value
