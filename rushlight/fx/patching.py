"""Patch functions while tracing runs: calls of modules, and functions that programs asked to have recorded.

All threads see the patches, but they act only in the thread that traces. Only one trace at a time may patch.
"""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.nn.modules.module import Module

_tracing = threading.RLock()
_MISSING = object()
# Functions that are recorded, not traced into, by (id of the globals of the module that called `wrap`, name).
_wrapped: dict[tuple[int, str], dict] = {}


def wrap(fn_or_name: Callable | str) -> Callable | str:
    """Record calls of a function as one node when it is called with proxies in this module.

    Call it at module level with the function's name (`torch.fx.wrap("len")`), or decorate the function. Returns its argument.
    """
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if name is None or not (isinstance(fn_or_name, str) or callable(fn_or_name)):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def wrapped_functions() -> Iterator[tuple[dict, str, Callable]]:
    """Yield (globals, name, function) of all functions that `wrap` was called with."""
    for (_, name), names in list(_wrapped.items()):
        builtin = names["__builtins__"]
        builtin = builtin if isinstance(builtin, dict) else vars(builtin)
        function = names.get(name, builtin.get(name))
        if callable(function):
            yield names, name, function


def names_of_function(function: Callable, names: dict) -> list[str]:
    """Return the names by which code with these globals finds a function."""
    found = [name for name, value in names.items() if value is function]
    name = getattr(function, "__name__", "")
    return found or ([name] if getattr(builtins, name, None) is function and name not in names else [])


class Patches:
    """Replacements of dictionary items and attributes, undone in reverse order at the end of the `with` block."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    def __enter__(self) -> Patches:
        _tracing.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            while self._undo:
                self._undo.pop()()
        finally:
            _tracing.release()

    def set_item(self, names: dict, name: str, value: Any) -> None:
        """Set `names[name]`."""
        before = names.get(name, _MISSING)
        names[name] = value
        self._undo.append(lambda: names.pop(name) if before is _MISSING else names.__setitem__(name, before))

    def set_attribute(self, owner: type, name: str, value: Any) -> None:
        """Set an attribute of a class."""
        before = owner.__dict__.get(name, _MISSING)
        setattr(owner, name, value)
        self._undo.append(lambda: delattr(owner, name) if before is _MISSING else setattr(owner, name, before))


def patched_modules(patches: Patches, thread: int, call_module: Callable, module_attribute: Callable) -> None:
    """Redirect this thread's module calls to `call_module(module, forward, args, kwargs)`.

    Parameters, buffers and submodules that the thread reads from modules pass through `module_attribute(value)`.
    """
    original, original_getattr = Module.__call__, Module.__getattr__

    def call(self: Module, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread:
            return original(self, *args, **kwargs)
        return call_module(self, lambda *a, **k: original(self, *a, **k), args, kwargs)

    def read(self: Module, name: str) -> Any:
        value = original_getattr(self, name)
        return module_attribute(value) if threading.get_ident() == thread else value

    patches.set_attribute(Module, "__call__", call)
    patches.set_attribute(Module, "__getattr__", read)
