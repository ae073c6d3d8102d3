"""Stubs for PyTorch names that this library lacks: they resolve in imports, annotations and base classes, and raise when used.

Only names that third-party packages mention without using are listed here, one by one. All other names stay absent, so
`hasattr` tells the truth.
"""

from __future__ import annotations

from collections.abc import Callable

_ABSENT = "Not here yet:"


def not_here(name: str, hint: str = "") -> NotImplementedError:
    """Return the error that using `name` raises."""
    return NotImplementedError(f"{name} is not here yet{'; ' + hint if hint else ''} (docs/compatibility.md lists what is)")


def is_absent(value: object) -> bool:
    """Return whether a function or class is one of these stubs."""
    return str(getattr(value, "__doc__", "")).startswith(_ABSENT)


def absent_function(name: str, hint: str = "") -> Callable:
    """Return a stub function: raises NotImplementedError with its name, `torch.x.y`, and a hint of what to use instead."""

    def function(*args: object, **kwargs: object) -> None:
        raise not_here(name, hint)

    module, _, short = name.rpartition(".")
    function.__name__ = function.__qualname__ = short
    function.__module__ = module
    function.__doc__ = f"{_ABSENT} raises NotImplementedError.{' ' + hint[:1].upper() + hint[1:] + '.' if hint else ''}"
    return function


def absent_class(name: str, hint: str = "", base: type = object) -> type:
    """Return a stub class: it can be named, tested for and inherited from; making an instance raises NotImplementedError."""
    module, _, short = name.rpartition(".")

    def refuse(cls: type, *args: object, **kwargs: object) -> None:
        raise not_here(name, hint)

    text = f"{_ABSENT} making one raises NotImplementedError.{' ' + hint[:1].upper() + hint[1:] + '.' if hint else ''}"
    return type(short, (base,), {"__new__": refuse, "__module__": module, "__doc__": text})
