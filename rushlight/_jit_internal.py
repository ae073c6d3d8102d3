"""`torch._jit_internal`: how the jit finds the names that scripted code mentions, and marks on Python functions.

A resolution callback takes a name and returns what it means; None where it means nothing.
"""

from __future__ import annotations

import builtins
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from rushlight.jit.compiler import closure_lookup, qualified_name
from rushlight.jit.decorators import export, ignore, unused
from rushlight.jit.language import is_scripting
from rushlight.jit.overloads import overload

__all__ = [
    "createResolutionCallback", "createResolutionCallbackForClassMethods", "createResolutionCallbackFromClosure",
    "createResolutionCallbackFromEnv", "createResolutionCallbackFromFrame", "export", "ignore", "is_scripting", "unused",
]  # fmt: skip

_qualified_name = qualified_name
_overload = _overload_method = overload


def createResolutionCallbackFromFrame(frames_up: int = 0) -> Callable[[str], Any]:  # noqa: N802  (PyTorch's name)
    """Return a callback for the names that a running function sees: its variables, globals and the built-ins.

    It is the function that calls this one, or with `frames_up` one as many calls further out. ValueError if there is none.
    """
    frame: types.FrameType | None = sys._getframe(1)
    for _ in range(frames_up):
        frame = frame.f_back if frame is not None else None
    if frame is None:
        raise ValueError(f"there are no {frames_up} calls around this one")
    variables, module = frame.f_locals, frame.f_globals

    def resolve(name: str) -> Any:
        return variables[name] if name in variables else module.get(name, getattr(builtins, name, None))

    return _resolve_dotted(resolve)


createResolutionCallback = createResolutionCallbackFromFrame
"""The name that it had before PyTorch 1.3."""


def createResolutionCallbackFromClosure(fn: Callable) -> Callable[[str], Any]:  # noqa: N802
    """Return a callback for the names that a function sees where it was defined."""
    return _resolve_dotted(closure_lookup(fn))


def createResolutionCallbackFromEnv(lookup_base: object) -> Callable[[str], Any]:  # noqa: N802
    """Return a callback for the attributes of an object, such as a module."""
    return _resolve_dotted(lambda name: getattr(lookup_base, name, None))


def createResolutionCallbackForClassMethods(cls: type) -> Callable[[str], Any]:  # noqa: N802
    """Return a callback for the names that some method of a class sees."""
    methods = [method for _, method in inspect.getmembers(cls, inspect.isfunction)]
    lookups = [closure_lookup(method) for method in methods]
    return _resolve_dotted(lambda name: next((found for each in lookups if (found := each(name)) is not None), None))


def _resolve_dotted(resolve: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a resolver of dotted names, given one of plain names."""

    def resolve_path(name: str) -> Any:
        first, *rest = name.split(".")
        found = resolve(first)
        for part in rest:
            found = getattr(found, part)
        return found

    return resolve_path
