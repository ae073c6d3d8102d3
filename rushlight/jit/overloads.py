"""`_overload`: several signatures for one Python function or method, each compiled from the one body.

In: declarations, which are functions whose bodies do not count, then the implementation under the same name. Out: the
definitions to compile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from rushlight.jit.frontend.definitions import get_jit_def
from rushlight.jit.tree_views import Decl, Def

_lock = threading.Lock()
_declared: dict[tuple[str, str], list[Callable]] = {}


def overload(function: Callable) -> Callable:
    """Declare a signature of the function of this name that is defined below."""
    with _lock:
        found = _declared.setdefault(_key(function), [])
        if found and found[0].__code__.co_firstlineno >= function.__code__.co_firstlineno:
            found.clear()  # the module is imported anew
        found.append(function)
    return function


def _key(function: Callable) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def overloads_of(function: Callable) -> list[Callable]:
    """The declared signatures of a function, in order; empty where it has none."""
    with _lock:
        return list(_declared.get(_key(function), ())) if hasattr(function, "__qualname__") else []


def overloaded_definition(declared: Callable, implementation: Def, self_name: str | None = None) -> Def:
    """The implementation with the signature that a declaration gives. RuntimeError where the names of parameters differ."""
    wanted: Decl = get_jit_def(declared, implementation.ident.name, self_name).decl
    names = [each.ident.name for each in wanted.params]
    if names != [each.ident.name for each in implementation.decl.params]:
        raise RuntimeError(
            f"Overload parameters {names} of '{implementation.ident.name}' do not match the implementation's "
            f"{[each.ident.name for each in implementation.decl.params]}: they must have the same names"
        )
    return replace(implementation, decl=wanted)
