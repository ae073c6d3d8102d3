"""Regions in which frames are captured, or are not: functions that switch the frame hook around a call.

In: a callback and a function. Out: a function whose call runs with the callback as frame hook.
"""

from __future__ import annotations

import functools
import os
import site
import types
import weakref
from collections.abc import Callable
from typing import Any

from rushlight._C import begin_region, call_in_region, skip_code
from rushlight.dynamo.instructions import parameter_names

_PACKAGE = __name__.partition(".")[0]
_MODULES = f"{_PACKAGE}.nn.modules"
# Folders of the standard library and of installed packages. (`sysconfig` is slow to import.)
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = tuple(folder + os.sep for folder in site.getsitepackages())
# Packages whose functions do no tensor arithmetic: following them gains nothing.
_NOT_FOLLOWED = ("numpy", "scipy", "_pytest", "pluggy", "pytest", "hypothesis", "bytecode", "coverage", "torch",
                 "ml_dtypes")  # fmt: skip
CALL_MODEL = "call_model"
"""The name of functions that only call a model; reports name the model instead."""


def is_left_alone(code: types.CodeType, namespace: dict[str, Any]) -> bool:
    """Return whether frames of a code object run in eager: comprehensions, this library, and packages without tensor
    arithmetic."""
    if not all(name.isidentifier() for name in parameter_names(code)):
        return True  # a comprehension's frame shares an iterator with its caller, which a resume function cannot take over
    module, path = namespace.get("__name__") or "", code.co_filename
    if module.partition(".")[0] == _PACKAGE:
        return not module.startswith(_MODULES) and code.co_name != CALL_MODEL
    if path.startswith(_INSTALLED):
        package = next(path[len(folder) :] for folder in _INSTALLED if path.startswith(folder)).split(os.sep)[0]
        return package in _NOT_FOLLOWED
    return path.startswith(_STANDARD) or path.startswith("<frozen")


def followable(model: Callable) -> Callable:
    """Return `model`, or a Python function that calls it if the hook would not see the model's own frame."""
    function = model.__func__ if isinstance(model, types.MethodType) else model
    if isinstance(function, types.FunctionType) and not is_left_alone(function.__code__, function.__globals__):
        return model

    def call_model(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    return call_model


_CALL_MODEL = next(code for code in followable.__code__.co_consts if isinstance(code, types.CodeType))


def only_calls_model(code: types.CodeType) -> bool:
    """Return whether this is the code of the function that `followable` makes; its closure holds the model."""
    return code is _CALL_MODEL


def optimize(callback: Callable) -> Callable[[Callable], Callable]:
    """Return a decorator that installs `callback` as the frame hook for calls of the function."""

    def decorate(function: Callable) -> Callable:
        followed = followable(function)

        def run(*args: Any, **kwargs: Any) -> Any:
            return call_in_region(callback, followed, args, kwargs)

        begin_region(run)
        _look_like(run, function)
        run._rushlight_original = function
        run._rushlight_followed = followed
        run._rushlight_callback = callback
        _wrappers.add(run)
        _switch(run)
        return run

    return decorate


_wrappers: weakref.WeakSet[Callable] = weakref.WeakSet()
_forced = False  # True while compiled functions are forced to run in eager


def force_eager(forced: bool) -> None:
    """Make all compiled functions, present and future, run in eager, or undo that."""
    global _forced
    _forced = forced
    for run in list(_wrappers):
        _switch(run)


def _switch(run: Callable) -> None:
    """Set the callback in a compiled function's closure; None disables the hook."""
    run.__closure__[run.__code__.co_freevars.index("callback")].cell_contents = None if _forced else run._rushlight_callback


_WRAPPER = next(
    inner for outer in optimize.__code__.co_consts if isinstance(outer, types.CodeType)
    for inner in outer.co_consts if isinstance(inner, types.CodeType) and inner.co_name == "run"
)  # fmt: skip


def is_compiled_wrapper(function: object) -> bool:
    """Return whether `optimize` returned this function. Its attributes do not tell, because `functools.wraps` copies them."""
    return type(function) is types.FunctionType and function.__code__ is _WRAPPER


def _look_like(wrapper: Callable, function: Callable) -> None:
    """Give a wrapper the name, docstring and attributes of a function, and keep it from being captured."""
    skip_code(wrapper.__code__)
    plain = isinstance(function, types.FunctionType | types.MethodType)
    functools.update_wrapper(wrapper, function, updated=("__dict__",) if plain else ())


def disable(function: Callable, recursive: bool = True) -> Callable:
    """Wrap `function` so that it is never captured; with `recursive`, neither are its callees."""
    if not recursive:
        skip_code(function.__code__)

    def run(*args: Any, **kwargs: Any) -> Any:
        return call_in_region(None, function, args, kwargs) if recursive else function(*args, **kwargs)

    _look_like(run, function)
    run._rushlight_disabled = True
    return run
