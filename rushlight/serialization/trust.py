"""Trusted globals: the user's additions to the allow-list of classes and functions in checkpoints.

In: classes and functions, or pairs of one and its name in pickles. Out: them, by name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from rushlight.serialization.torch_names import module_in_torch

SafeGlobal = Callable | tuple[Callable, str]
OWN, TORCH = "rushlight", "torch"

_lock = threading.Lock()
_trusted: dict[str, SafeGlobal] = {}


def add_safe_globals(safe_globals: Iterable[SafeGlobal]) -> None:
    """Allow `load` with `weights_only=True` to use these classes and functions, in this process from now on."""
    named = {name: given for given in safe_globals for name in _names(given)}
    with _lock:
        _trusted.update(named)


def get_safe_globals() -> list[SafeGlobal]:
    """Return the globals added by `add_safe_globals`."""
    with _lock:
        return list(dict.fromkeys(_trusted.values()))


def clear_safe_globals() -> None:
    """Remove all added globals."""
    with _lock:
        _trusted.clear()


class safe_globals:  # noqa: N801 (the name in torch)
    """A block in which `load` may use these classes and functions."""

    def __init__(self, safe_globals: Iterable[SafeGlobal]):
        self.given = list(safe_globals)

    def __enter__(self) -> None:
        with _lock:
            self.before = dict(_trusted)
        add_safe_globals(self.given)

    def __exit__(self, *error: object) -> None:
        with _lock:
            _trusted.clear()
            _trusted.update(self.before)


def trusted_globals() -> dict[str, Any]:
    """Return classes and functions by their names in pickles."""
    with _lock:
        return {name: given[0] if isinstance(given, tuple) else given for name, given in _trusted.items()}


def _names(given: SafeGlobal) -> list[str]:
    """Return the names of a class: its own, and that of the torch class that it replaces."""
    if isinstance(given, tuple):
        if len(given) != 2 or not isinstance(given[1], str):
            raise ValueError(f"Expected tuple of length 2 (global, str of callable full path), but got {given}")
        return [given[1]]
    if not callable(given):
        raise TypeError(f"add_safe_globals takes classes, functions, and pairs of one and its name, but got {given!r}")
    name = f"{given.__module__}.{given.__qualname__}"
    if given.__module__.partition(".")[0] not in (OWN, TORCH):
        return [name]
    return [name, f"{module_in_torch(given.__module__, given.__qualname__)}.{given.__qualname__}"]
