"""The state of a scripted module outside of Python: the attributes that persist between runs, and their initial values.

In: a module's object as it was exported. Out: numbers of states, by the path of an attribute.
"""

from __future__ import annotations

from rushlight.deploy.model import Model
from rushlight.deploy.spelling import NotExportable
from rushlight.jit.runtime.objects import ScriptObject

Path = tuple[str, ...]


class States:
    """The attributes of one object that are state; an attribute gets a number when `number` is first called for it."""

    def __init__(self, model: Model, first: ScriptObject | None):
        self.model = model
        self.first = first
        self._numbers: dict[Path, int] = {}
        self._same: dict[tuple[int, str], int] = {}

    def number(self, path: Path) -> int:
        """Return the number of the state at a path below the module. NotExportable where it holds values that have no form in
        C."""
        if path not in self._numbers:
            owner = self.first
            for name in path[:-1]:
                owner = owner.slots[name]
            key = (id(owner), path[-1])
            if key not in self._same:
                value = owner.slots[path[-1]]
                if isinstance(value, ScriptObject):
                    raise NotExportable(f"the attribute {'.'.join(path)}, which the code assigns, is an object of a class")
                self._same[key] = self.model.add_state(".".join(path), value)
            self._numbers[path] = self._same[key]
        return self._numbers[path]
