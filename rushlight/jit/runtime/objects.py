"""Objects of scripted classes, as the interpreter holds them; modules are objects, too."""

from __future__ import annotations

from rushlight.jit.types.kinds import ClassType


class ScriptObject:
    """An instance of a class: its type and the values of its attributes by name."""

    __slots__ = ("type", "slots", "__weakref__")

    def __init__(self, kind: ClassType):
        self.type = kind
        self.slots: dict[str, object] = {}

    def __repr__(self) -> str:
        return f"<ScriptObject {self.type.name}>"
