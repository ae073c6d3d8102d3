"""`_overload`: several signatures for one Python function or method, each compiled from the one body.

In: declarations, which are functions with ignored bodies, then the implementation under the same name. Out: the definitions to
compile.
"""

from __future__ import annotations

import dis
import inspect
import threading
from collections.abc import Callable
from dataclasses import replace

from rushlight.jit.frontend.definitions import get_jit_def
from rushlight.jit.tree_views import Decl, Def

_NO_CODE = frozenset(("RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "COPY_FREE_VARS"))
"""The instructions of a function whose body is `pass`, `...` or a docstring."""
_lock = threading.Lock()
_declared: dict[tuple[str, str], list[Callable]] = {}


def overload(function: Callable) -> Callable:
    """Declare a signature of the function of this name that is defined below. RuntimeError for one with code in its body."""
    _check_body(function)
    with _lock:
        found = _declared.setdefault(_key(function), [])
        if found and found[0].__code__.co_firstlineno >= function.__code__.co_firstlineno:
            found.clear()  # the module is being reloaded
        found.append(function)
    return function


def _key(function: Callable) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def overloads_of(function: Callable) -> list[Callable]:
    """Return the declared signatures of a function, in order; empty where it has none."""
    with _lock:
        return list(_declared.get(_key(function), ())) if hasattr(function, "__qualname__") else []


def overloaded_definition(declared: Callable, implementation: Def, self_name: str | None = None) -> Def:
    """Return the implementation with the signature of a declaration; omitted parameters keep their own.

    RuntimeError where parameter names differ, and where an omitted one has no annotation.
    """
    wanted: Decl = get_jit_def(declared, implementation.ident.name, self_name).decl
    own = implementation.decl.params
    if len(wanted.params) > len(own):
        raise RuntimeError(f"Overload of '{implementation.ident.name}' has {len(wanted.params)} parameters, but the "
                           f"implementation only {len(own)}")  # fmt: skip
    for index, (mine, theirs) in enumerate(zip(wanted.params, own, strict=False)):
        if mine.ident.name != theirs.ident.name:
            raise RuntimeError(
                "Overload parameters must have the same names. "
                f"Found {mine.ident.name} and {theirs.ident.name} on argument {index}"
            )
    rest = own[len(wanted.params) :]
    bare = next((each for each in rest if each.annotation is None), None)
    if bare is not None:
        raise RuntimeError(
            "Parameters not specified on the overloaded declaration must have a type annotation in the implementation "
            f"function. Did not find type for param {bare.ident.name}"
        )
    return replace(implementation, decl=replace(wanted, params=[*wanted.params, *rest]))


def check_defaults(declared: Callable, implementation: Callable) -> None:
    """Raise RuntimeError where a declaration gives another default than the implementation, whose defaults apply."""
    theirs = {name: each.default for name, each in inspect.signature(implementation).parameters.items()}
    for name, each in inspect.signature(declared).parameters.items():
        own = theirs.get(name, each.empty)
        if each.empty not in (each.default, own) and each.default != own:
            raise RuntimeError(
                "Default parameters on overloads do not affect the runtime so they must equal to the default parameter on the "
                f"implementation function. Found on parameter {name}"
            )


def _check_body(function: Callable) -> None:
    """Raise RuntimeError for a declaration with code: its body must be `pass` or `...`."""
    for each in dis.get_instructions(function):
        is_code = each.opname not in _NO_CODE or (each.opname in ("LOAD_CONST", "RETURN_CONST") and each.argval is not None)
        if is_code:
            raise RuntimeError(
                f"Only `pass` statement or `...` can be the body of overload declaration: {function.__qualname__} in "
                f"{function.__code__.co_filename}, line {function.__code__.co_firstlineno}, has code"
            )
