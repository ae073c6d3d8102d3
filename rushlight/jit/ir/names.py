"""Names of values, unique within a graph: `x.1` and `x.2` where several are called x."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rushlight.jit.ir.graph import Value

_SUFFIX = re.compile(r"(.*)\.(\d+)\Z", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_0-9.]+\Z")


def is_meaningful(name: str) -> bool:
    """Return whether a variable's name is worth keeping: not `_`, not the `_0` of printed code, and not one of the compiler's
    own."""
    return not name.startswith("$") and not (name[:1] == "_" and (name[1:].isdigit() or name == "_"))


class ValueNames:
    """The names that a graph's values have."""

    def __init__(self) -> None:
        self._taken: dict[str, Value] = {}
        self._suffixes: dict[str, int] = {}

    def is_taken(self, name: str) -> bool:
        """Return whether a value has this name."""
        return name in self._taken

    def claim(self, value: Value, name: str) -> str:
        """Give a value this name, or else the next free `name.N`; returns the name. ValueError for an empty name."""
        if not _NAME.match(name) or name.isdecimal():
            raise ValueError(f"{name!r} can't be a value's name: letters, digits, '_' and '.' can stand in it, not only digits")
        if name in self._taken:
            name = self._next_free(name)
        self.release(value)
        self._taken[name] = value
        return name

    def yield_name(self, name: str) -> None:
        """Rename the value with this name, if there is one, to `name.N`."""
        owner = self._taken.get(name)
        if owner is not None:
            owner.debug_name = name

    def release(self, value: Value) -> None:
        """Remove the value's name."""
        if value._name is not None and self._taken.get(value._name) is value:
            del self._taken[value._name]
        value._name = None

    def _next_free(self, name: str) -> str:
        suffixed = _SUFFIX.match(name)
        base, number = (suffixed[1], int(suffixed[2])) if suffixed else (name, 1)
        number = max(number, self._suffixes.get(base, 1))
        while f"{base}.{number}" in self._taken:
            number += 2
        self._suffixes[base] = number
        return f"{base}.{number}"
