"""Tracing-related functions for programs: a query for an active trace, and a decorator that scripts a function inside one."""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight.jit.emit.builtin_names import FormValue
from rushlight.jit.emit.python_values import FUNCTIONS
from rushlight.jit.scripting import script
from rushlight.jit.tracing.state import is_tracing

__all__ = ["is_tracing", "script_if_tracing"]


def script_if_tracing(fn: Callable) -> Callable:
    """Script a function when a trace first calls it, so that its control flow is kept; otherwise it runs in Python."""

    @functools.wraps(fn)
    def wrapper(*args: object, **kwargs: object) -> object:
        return script(fn)(*args, **kwargs) if is_tracing() else fn(*args, **kwargs)

    wrapper.__original_fn = fn
    wrapper.__script_if_tracing_wrapper = True
    return wrapper


FUNCTIONS[is_tracing] = FormValue("is_tracing")
