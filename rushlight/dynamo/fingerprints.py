"""Fingerprints of code, functions and classes: equal in two processes only if a capture would treat the objects alike.

In: an object of the program or of a library. Out: a text. The library's own functions are identified by file and line only, so
a comparison of fingerprints must compare the library's version, too.
"""

from __future__ import annotations

import os
import types
from enum import Enum
from functools import cached_property
from typing import Any

from rushlight.utils.native.cache import digest

_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was made by Python code
PLAIN_KINDS = (int, float, complex, bool, str, bytes, type(None), type(...))
"""Types whose `repr` describes a value completely."""

METHODS = (staticmethod, classmethod, property, cached_property)
"""Wrappers of functions in a class's namespace."""

# Class attributes that differ between equal classes or do not affect instances.
_IGNORED_ATTRIBUTES = frozenset((
    "__dict__", "__weakref__", "__doc__", "__annotations__", "__static_attributes__", "__firstlineno__", "__annotate__",
    "__annotate_func__", "__annotations_cache__", "_abc_impl", "__dataclass_params__",
))  # fmt: skip


def name_of(kind: type) -> str:
    """Return the qualified name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def of_code(code: types.CodeType) -> str:
    """Return a digest of everything that code does and of its place in the source."""
    if code.co_filename.startswith(_LIBRARY):
        return f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}"
    return digest(_code_text(code))


def of_function(function: types.FunctionType) -> str:
    """Fingerprint a function by its code and its attributes' names. Defaults, globals and cells are guarded where they are
    used."""
    return f"{of_code(function.__code__)} {sorted(function.__dict__)}"


class Fingerprints:
    """Computes fingerprints, and caches those of classes. Use one instance at one time only: classes may change later."""

    def __init__(self) -> None:
        self._classes: dict[type, str] = {}
        self._own: dict[type, str] = {}

    def of(self, value: Any) -> str:
        """Return the fingerprint of any object. An object that is not code, a function, class, method or Enum member is
        described by its type and name."""
        if isinstance(value, types.FunctionType):
            return of_function(value)
        if isinstance(value, types.CodeType):
            return of_code(value)
        if isinstance(value, type):
            return self.of_class(value)
        if isinstance(value, METHODS):
            return _member_text(value)
        if isinstance(value, Enum):
            return f"{self.of_class(type(value))} {value.name} {_describe_plain(value.value)}"
        return f"{name_of(type(value))} {getattr(value, '__qualname__', '')}"

    def of_class(self, kind: type) -> str:
        """Fingerprint a class with its bases: methods and plain attributes in full, other attributes by type."""
        found = self._classes.get(kind)
        if found is None:
            bases = map(self._describe_class, kind.__mro__)
            found = self._classes[kind] = digest(f"{name_of(kind)} {name_of(type(kind))}", *bases)
        return found

    def _describe_class(self, kind: type) -> str:
        """Describe a class by its name, bases and members."""
        text = self._own.get(kind)
        if text is None:
            text = name_of(kind)
            if kind.__flags__ & _HEAP_TYPE:
                held = vars(kind)
                text += str([f"{name}={_member_text(held[name])}" for name in sorted(held) if name not in _IGNORED_ATTRIBUTES])
            self._own[kind] = text
        return text


def _member_text(value: Any) -> str:
    """Describe a member of a class."""
    if isinstance(value, types.FunctionType):
        return of_function(value)
    if isinstance(value, staticmethod | classmethod):
        return f"{type(value).__name__} {_member_text(value.__func__)}"
    if isinstance(value, cached_property):
        return f"{name_of(type(value))} {_member_text(value.func)}"
    if isinstance(value, property):
        return f"property {_member_text(value.fget)} {_member_text(value.fset)} {_member_text(value.fdel)}"
    return _describe_plain(value)


def _describe_plain(value: Any) -> str:
    """Describe a value of a plain type; others by their name."""
    if type(value) in PLAIN_KINDS:
        return repr(value)
    if type(value) is tuple:
        return f"({','.join(map(_describe_plain, value))})"
    if type(value) is frozenset:
        return f"frozenset({sorted(map(_describe_plain, value))})"
    return name_of(type(value))


def _code_text(code: types.CodeType) -> str:
    """Describe a code object by its bytecode, names and constants."""
    constants = [_code_text(value) if isinstance(value, types.CodeType) else _describe_plain(value) for value in code.co_consts]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_firstlineno
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    lines = code.co_linetable, code.co_exceptiontable
    return f"{code.co_filename} {code.co_qualname} {counts} {names} {code.co_code!r} {lines} {constants}"
