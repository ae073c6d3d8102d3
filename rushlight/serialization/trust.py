"""Which classes and functions a checkpoint may name beside those of the allow-list: what the user vouches for.

In: classes and functions, or pairs of one and the name under which pickles know it. Out: them, by name.
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
    """Let `load` with `weights_only=True` use these classes and functions, in this process from now on."""
    named = {name: given for given in safe_globals for name in _names(given)}
    with _lock:
        _trusted.update(named)


def get_safe_globals() -> list[SafeGlobal]:
    """What `add_safe_globals` was given."""
    with _lock:
        return list(dict.fromkeys(_trusted.values()))


def clear_safe_globals() -> None:
    """Forget all of them."""
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
    """Classes and functions by the names that pickles have for them."""
    with _lock:
        return {name: given[0] if isinstance(given, tuple) else given for name, given in _trusted.items()}


def _names(given: SafeGlobal) -> list[str]:
    """The names of a class: its own, and that of torch's class of which it takes the place."""
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
