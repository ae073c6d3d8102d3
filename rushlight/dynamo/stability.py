"""Stability: captures assume that the standard library and this library do not change while a program runs. Also looks up
attributes of classes that may change."""

from __future__ import annotations

import sys
import types
from typing import Any

from rushlight.core.naming import own_module

MISSING = object()
_STANDARD = frozenset(sys.stdlib_module_names) | {"rushlight"}


def is_stable(owner: Any) -> bool:
    """Return whether the attributes of a class or module are assumed constant: it belongs to the standard library or to this
    library."""
    name = owner.__name__ if isinstance(owner, types.ModuleType) else own_module(owner)
    return name.partition(".")[0] in _STANDARD


def look_up(kind: type, name: str) -> object:
    """Return a class's attribute in its method resolution order, without descriptors; `MISSING` if there is none."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING
