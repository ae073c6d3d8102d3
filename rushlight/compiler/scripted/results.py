"""How the results of scripted code are put together again from what native code gives.

In: values at the end of a capture, with fake tensors and Symbols in them. Out: the tensors that native code is to give, each
once, and functions that make the values of a call. Lists, dicts and objects that the code made are made anew for each call, and
shared where the code shares them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rushlight.compiler.scripted.readers import Arguments
from rushlight.compiler.scripted.world import Symbol, World
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject


@dataclass(slots=True)
class Call:
    """One call: what native code gave, the arguments, and the containers and objects that were made for it so far."""

    outputs: Sequence[Tensor]
    arguments: Arguments
    made: dict[int, object] = field(default_factory=dict)


Maker = Callable[[Call], object]


class Results:
    """Collects `outputs`: the tensors, and integers of open sizes, that native code is to give."""

    def __init__(self, world: World):
        self.world = world
        self.outputs: list[Tensor | SymInt] = []
        self._places: dict[int, int] = {}
        self._makers: dict[int, Maker] = {}

    def maker(self, value: object) -> Maker:
        """What makes a value."""
        if isinstance(value, Tensor):
            return self._output(id(value._impl), value)
        if type(value) is SymInt:
            return self._output(hash(value), value)
        if type(value) is Symbol:
            return lambda call: value.read(call.arguments)
        container = self.world.containers.get(id(value))
        if container is not None:  # one that was there before: its contents are put back beforehand
            return lambda call: container.read(call.arguments)
        if isinstance(value, tuple):
            return self._tuple(value)
        if isinstance(value, list | dict):
            return self._shared(value, self._filled_container)
        if isinstance(value, ScriptObject) and not isinstance(value, ExtensionObject):
            if not self.world.is_outside(value):
                return self._shared(value, self._filled_object)
            read = self.world.reader_of(value)
            return lambda call: read(call.arguments)
        return lambda call: value

    def contents(self, value: list | dict) -> Callable[[Call, list | dict], None]:
        """What puts the items of a container into another."""
        return self._filled_container(value)[1]

    def _output(self, key: int, value: Tensor | SymInt) -> Maker:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.outputs)
            self.outputs.append(value)
        return lambda call: call.outputs[place]

    def _tuple(self, value: tuple) -> Maker:
        makers, kind = [self.maker(item) for item in value], type(value)
        if hasattr(kind, "_fields"):
            return lambda call: kind(*[make(call) for make in makers])
        return lambda call: tuple([make(call) for make in makers])

    def _shared(self, value: object, filled: Callable[[object], tuple[Callable, Callable]]) -> Maker:
        """A maker of something that has an identity: what it holds is put into it after it is there, as it may hold itself."""
        key = id(value)
        if key in self._makers:
            return self._makers[key]
        parts: list[Callable] = []

        def make(call: Call) -> object:
            found = call.made.get(key)
            if found is None:
                new, fill = parts
                found = call.made[key] = new()
                fill(call, found)
            return found

        self._makers[key] = make
        parts += filled(value)
        return make

    def _filled_container(self, value: list | dict) -> tuple[Callable, Callable]:
        if isinstance(value, dict):
            pairs = [(key, self.maker(item)) for key, item in value.items()]
            return dict, lambda call, target: target.update([(key, make(call)) for key, make in pairs])
        makers = [self.maker(item) for item in value]
        return list, lambda call, target: target.extend([make(call) for make in makers])

    def _filled_object(self, value: ScriptObject) -> tuple[Callable, Callable]:
        kind = value.type
        fill = self._filled_container(value.slots)[1]
        return lambda: ScriptObject(kind), lambda call, target: fill(call, target.slots)


class Effects:
    """What a call puts into objects, lists and dicts after native code has run: all is made before anything is changed."""

    def __init__(self, world: World, results: Results):
        self.attributes = [
            (attribute, results.maker(world.get(attribute.owner, attribute.name))) for attribute in world.written.values()
        ]
        changed = [each for each in world.containers.values() if each.is_changed]
        self.containers = [(each.read, type(each.shadow), each.grows, results.contents(each.shadow)) for each in changed]

    def apply(self, call: Call) -> None:
        """Put the values of a call where they belong."""
        contents = []
        for read, kind, grows, fill in self.containers:
            content = kind()
            fill(call, content)
            contents.append((read(call.arguments), grows, content))
        values = [(each.read_owner(call.arguments), each.name, make(call)) for each, make in self.attributes]
        for target, grows, content in contents:
            if isinstance(target, list):
                target[len(target) if grows else 0 :] = content
            else:
                target.clear()
                target.update(content)
        for owner, name, value in values:
            owner.slots[name] = value
