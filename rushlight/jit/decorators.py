"""`@export`, `@ignore`, `@unused` and their kin: marks on functions that `script` reads.

`ignore` leaves a method to Python, `unused` makes it raise when it is called, `export` compiles it although nothing calls it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

_MARK = "_rushlight_jit_mark"


def export(function: Callable) -> Callable:
    """Compile this method of a module although `forward` does not call it."""
    setattr(function, _MARK, "export")
    return function


def ignore(drop: bool | Callable = False, **kwargs: object) -> Callable:
    """Leave a function to Python; with `drop`, calling it raises instead. Code that calls it can't be saved."""
    if callable(drop):
        return _mark(drop, "ignore")
    return functools.partial(_mark, mark="unused" if drop else "ignore")


def unused(function: Callable) -> Callable:
    """Make a function raise in scripted code; in eager it is unchanged."""
    if isinstance(function, property):
        return property(_mark(function.fget, "unused"))
    return _mark(function, "unused")


def _mark(function: Callable, mark: str) -> Callable:
    setattr(function, _MARK, mark)
    return function


def mark_of(function: object) -> str | None:
    """Return the mark that a decorator left on a function: "export", "ignore" or "unused"; None without a mark."""
    return getattr(function, _MARK, None)


def is_ignored(function: object) -> bool:
    """Return whether a function is left to Python."""
    return mark_of(function) == "ignore"


def is_unused(function: object) -> bool:
    """Return whether a function raises in scripted code."""
    return mark_of(function) == "unused"


def is_exported(function: object) -> bool:
    """Return whether a method is compiled although nothing calls it."""
    return mark_of(function) == "export"
