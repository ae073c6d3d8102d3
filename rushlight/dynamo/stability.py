"""What captures take for granted: the standard library and this library do not change while a program runs. And what classes
have, as it is looked up for what may change."""

from __future__ import annotations

import sys
import types
from typing import Any

from rushlight.core.naming import own_module

MISSING = object()  # what is not there
_STANDARD = frozenset(sys.stdlib_module_names) | {"rushlight"}


def is_stable(owner: Any) -> bool:
    """Whether what a class or module holds may be taken for granted: the standard library's and this library's own."""
    name = owner.__name__ if isinstance(owner, types.ModuleType) else own_module(owner)
    return name.partition(".")[0] in _STANDARD


def look_up(kind: type, name: str) -> object:
    """What a class's method resolution order has under a name, without descriptors; `MISSING` where nothing."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING
