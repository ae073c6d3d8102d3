"""Regions of a program in which frames are captured, or are not: functions that switch the hook around a call.

In: a callback and a function. Out: the function, whose calls (and those that it makes) go through the callback.
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
# Where files of the standard library lie, and installed packages. (`sysconfig` takes long to import.)
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = tuple(folder + os.sep for folder in site.getsitepackages())
# Packages whose functions do no tensor arithmetic: following them gains nothing.
_NOT_FOLLOWED = ("numpy", "scipy", "_pytest", "pluggy", "pytest", "hypothesis", "bytecode", "coverage", "torch",
                 "ml_dtypes")  # fmt: skip
CALL_MODEL = "call_model"
"""The name of functions that only call a model: what they are about is the model."""


def is_left_alone(code: types.CodeType, namespace: dict[str, Any]) -> bool:
    """Whether frames of a code object, with these globals, run as they are: those of comprehensions, of this library, and of
    what does no tensor arithmetic."""
    if not all(name.isidentifier() for name in parameter_names(code)):
        return True  # a comprehension, whose frame goes on with an iterator that nobody else sees
    module, path = namespace.get("__name__") or "", code.co_filename
    if module.partition(".")[0] == _PACKAGE:
        return not module.startswith(_MODULES) and code.co_name != CALL_MODEL
    if path.startswith(_INSTALLED):
        package = next(path[len(folder) :] for folder in _INSTALLED if path.startswith(folder)).split(os.sep)[0]
        return package in _NOT_FOLLOWED
    return path.startswith(_STANDARD) or path.startswith("<frozen")


def followable(model: Callable) -> Callable:
    """`model`, or a Python function that calls it where the hook would not see its own frame."""
    function = model.__func__ if isinstance(model, types.MethodType) else model
    if isinstance(function, types.FunctionType) and not is_left_alone(function.__code__, function.__globals__):
        return model

    def call_model(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    return call_model


_CALL_MODEL = next(code for code in followable.__code__.co_consts if isinstance(code, types.CodeType))


def only_calls_model(code: types.CodeType) -> bool:
    """Whether this is the code of a function that `followable` made, whose closure is the model."""
    return code is _CALL_MODEL


def optimize(callback: Callable) -> Callable[[Callable], Callable]:
    """A decorator that has `callback` asked about the function's frames and those below them."""

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
_forced = False  # whether compiled functions run as they are


def force_eager(forced: bool) -> None:
    """Let compiled functions, present and future ones, run as they are, or let them run compiled again."""
    global _forced
    _forced = forced
    for run in list(_wrappers):
        _switch(run)


def _switch(run: Callable) -> None:
    """A compiled function's call reads its callback from its closure; without one there is no hook."""
    run.__closure__[run.__code__.co_freevars.index("callback")].cell_contents = None if _forced else run._rushlight_callback


_WRAPPER = next(
    inner for outer in optimize.__code__.co_consts if isinstance(outer, types.CodeType)
    for inner in outer.co_consts if isinstance(inner, types.CodeType) and inner.co_name == "run"
)  # fmt: skip


def is_compiled_wrapper(function: object) -> bool:
    """Whether a function is what `optimize` returned. Others may have its attributes, which `functools.wraps` copies."""
    return getattr(function, "__code__", None) is _WRAPPER


def _look_like(wrapper: Callable, function: Callable) -> None:
    skip_code(wrapper.__code__)
    plain = isinstance(function, types.FunctionType | types.MethodType)
    functools.update_wrapper(wrapper, function, updated=("__dict__",) if plain else ())


def disable(function: Callable, recursive: bool = True) -> Callable:
    """`function`, which is never captured, nor, if `recursive`, what it calls."""
    if not recursive:
        skip_code(function.__code__)

    def run(*args: Any, **kwargs: Any) -> Any:
        return call_in_region(None, function, args, kwargs) if recursive else function(*args, **kwargs)

    _look_like(run, function)
    run._rushlight_disabled = True
    return run
