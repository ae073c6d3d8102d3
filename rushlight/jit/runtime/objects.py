"""Objects of scripted classes in the interpreter; modules are objects, too."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from rushlight.jit.function import Function
from rushlight.jit.types.kinds import ClassType, Type

Kept = TypeVar("Kept")
Runner = Callable[[Function, list], object]
_runner: list[Runner] = []


def set_runner(run: Runner) -> None:
    """Register the function that runs functions: the executor's, which depends on this module."""
    _runner[:] = [run]


def run_with_executor(function: Function, arguments: list) -> object:
    """Call a function: returns its result, a tuple of several, or None."""
    return _runner[0](function, arguments)


class ScriptObject:
    """An instance of a class: its type and the values of its attributes by name."""

    __slots__ = ("type", "slots", "_kept", "__weakref__")

    def __init__(self, kind: ClassType):
        self.type = kind
        self.slots: dict[str, object] = {}
        self._kept: dict[object, object] = {}

    def kept_for(self, holder: object, make: Callable[[], Kept]) -> Kept:
        """Return a value that `holder` caches for this object and that lives as long as the object; created on first use."""
        found = self._kept.get(holder)
        return self._kept.setdefault(holder, make()) if found is None else found

    def call(self, name: str, *arguments: object) -> object:
        """Call one of its scripted methods. RuntimeError for an unknown name."""
        method = self.type.find_method(name)
        if method is None:
            raise RuntimeError(f"class '{self.type.name}' has no method '{name}'")
        return _runner[0](method, [self, *arguments])

    def __getattr__(self, name: str) -> object:
        """Return an attribute of the class, or one of its methods."""
        kind = object.__getattribute__(self, "type")
        if name in kind.attributes:
            return object.__getattribute__(self, "slots")[name]
        if name in kind.properties:
            return _runner[0](kind.properties[name][0], [self])
        if not name.startswith("__") and kind.find_method(name) is not None:
            return partial(self.call, name)
        raise AttributeError(f"an object of '{kind.name}' has no attribute '{name}'")

    def __lt__(self, other: ScriptObject) -> bool:
        return self.call("__lt__", other)

    def __deepcopy__(self, memo: dict[int, object]) -> ScriptObject:
        made = memo[id(self)] = type(self)(self.type)
        made.slots = copy.deepcopy(self.slots, memo)
        return made

    def __repr__(self) -> str:
        return f"<ScriptObject {self.type.name}>"


class ExtensionObject(ScriptObject):
    """An object of an extension class: `held` is the value that operators take, None until an archive's state is read."""

    __slots__ = ("held",)

    def __init__(self, kind: ClassType, held: object = None):
        super().__init__(kind)
        self.held = held

    def __deepcopy__(self, memo: dict[int, object]) -> ExtensionObject:
        return memo.setdefault(id(self), type(self)(self.type, self.held))

    def __str__(self) -> str:
        return f"object({id(self):#x})"


class SharedContainer:
    """A list or dict that Python shares with scripted code: `held` are the values, `type` is the container's type."""

    __slots__ = ("held", "type")

    def __init__(self, held: list | dict, kind: Type):
        self.held = held
        self.type = kind

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator:
        return iter(self.held)

    def __repr__(self) -> str:
        return repr(self.held)
