"""Write objects of any class to a checkpoint, as Python's pickle does: by `__reduce_ex__`, classes and functions by name.

In: an object that the pickler has no instruction for. Out: instructions of protocol 2. A class of this library is written under
torch's name if `load` finds it there.
"""

from __future__ import annotations

import copyreg
import pickle
import sys
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from rushlight.serialization.errors import PicklingError
from rushlight.serialization.torch_names import module_in_torch
from rushlight.serialization.trust import OWN, TORCH
from rushlight.serialization.whole import find_own

if TYPE_CHECKING:
    from rushlight.serialization.pickler import Pickler

_NAMED = (type, FunctionType, BuiltinFunctionType)
_ONLY_INSTANCES = (None, NotImplemented, ...)


def save_object(machine: Pickler, value: Any) -> None:
    """Write an object; PicklingError where it cannot be pickled."""
    reduce = copyreg.dispatch_table.get(type(value))
    if reduce is None and isinstance(value, _NAMED):
        _save_named(machine, value, value.__qualname__)
        return
    try:
        reduced = reduce(value) if reduce is not None else value.__reduce_ex__(2)
    except TypeError as error:
        raise PicklingError(str(error)) from error
    if isinstance(reduced, str):
        _save_named(machine, value, reduced)
    else:
        _save_reduced(machine, value, *reduced)


def _save_named(machine: Pickler, value: Any, qualified: str) -> None:
    for only in _ONLY_INSTANCES:
        if value is type(only):
            machine.write_call("__builtin__", "type", (only,))
            return
    module = machine.module_of(value, qualified)
    outer, _, name = qualified.rpartition(".")
    if outer:  # pickle protocol 2 cannot name nested classes
        owner = machine.find_named(module, outer)
        machine.write_call("__builtin__", "getattr", (lambda: _save_named(machine, owner, outer), name))
    else:
        machine.write_global(module, name)


def module_of(value: Any, qualified: str) -> str:
    """Return the module under which a class or function is written; PicklingError if it is not found there."""
    module = getattr(value, "__module__", None) or pickle.whichmodule(value, qualified)
    if module in ("builtins", "__builtin__"):
        return "__builtin__"
    if find_named(module, qualified) is not value:
        raise PicklingError(f"Can't pickle {value!r}: it's not the same object as {module}.{qualified}")
    if module.partition(".")[0] in (OWN, TORCH):
        named = module_in_torch(module, qualified)
        return named if find_named(named, qualified) is value else module
    return module


def find_named(module: str, qualified: str) -> Any:
    """Return the object of a name; None if there is none.

    Third-party modules below torch's name are found if they have been imported: PyTorch is never imported.
    """
    found = _find_in_library(module, qualified)
    try:
        if found is None:
            if not _is_torch(module):
                __import__(module)
            found = sys.modules[module]
            for part in qualified.split("."):
                found = getattr(found, part)
    except (ImportError, AttributeError, KeyError):
        return None
    return found


def _is_torch(module: str) -> bool:
    return module == TORCH or module.startswith(f"{TORCH}.")


def _find_in_library(module: str, qualified: str) -> Any:
    if not _is_torch(module):
        return None
    try:
        return find_own(module, qualified)
    except (ImportError, AttributeError):
        return None


def _save_reduced(
    machine: Pickler, value: Any, function: Any, args: tuple, state: Any = None, items: Any = None, pairs: Any = None,
    set_state: Any = None,
) -> None:  # fmt: skip
    if getattr(function, "__name__", "") == "__newobj__":
        machine.save(args[0])
        machine.write_tuple(tuple(partial(machine.save, item) for item in args[1:]))
        machine.out += pickle.NEWOBJ
    else:
        if getattr(function, "__name__", "") == "__newobj_ex__":
            kind, given, named = args
            function, args = partial(kind.__new__, kind, *given, **named), ()
        machine.save(function)
        machine.write_tuple(tuple(partial(machine.save, item) for item in args))
        machine.out += pickle.REDUCE
    machine.memoize(value)
    for item in items or ():
        machine.save(item)
        machine.out += pickle.APPEND
    for key, item in pairs or ():
        machine.save(key)
        machine.save(item)
        machine.out += pickle.SETITEM
    if state is not None:
        _write_state(machine, value, state, set_state)


def _write_state(machine: Pickler, value: Any, state: Any, set_state: Any) -> None:
    if set_state is None:
        machine.save(state)
        machine.out += pickle.BUILD
        return
    machine.save(set_state)
    machine.write_tuple((partial(machine.save, value), partial(machine.save, state)))
    machine.out += pickle.REDUCE + pickle.POP
