"""KeyChecker: restrict dictionary keys and set elements in a checkpoint.

Hashing is where hostile data can make a dictionary slow or overflow the C stack: nested tuples hash recursively and without
caching, and equal hashes can be manufactured for huge integers, complex numbers and tuples. Keys are therefore limited to
numbers, strings and small tuples of them, which is enough for state dicts.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.size import Size

_ATOMS = (str, bytes, bool, int, float, type(None), dtype, device)
_INTEGER_LIMIT = 1 << 64
_MAX_TUPLES = 10_000
_MAX_TUPLE = 64


class KeyChecker:
    """Checks the keys of one pickle, raising `error` for rejected ones."""

    def __init__(self, error: type[Exception]):
        self.error = error
        self.tuples = 0

    def check(self, key: Any) -> None:
        """Return if `key` may be hashed."""
        kind = type(key)
        if kind is str:
            return
        if kind is tuple or kind is Size:
            self._check_tuple(key)
        elif kind not in _ATOMS:
            raise self.error(f"a {kind.__name__} is used as a dictionary key or set element; use strings or numbers")
        elif kind is int and not -_INTEGER_LIMIT < key < _INTEGER_LIMIT:
            raise self.error("an integer of more than 64 bits is used as a dictionary key or set element")

    def _check_tuple(self, key: tuple) -> None:
        self.tuples += 1
        if self.tuples > _MAX_TUPLES:
            raise self.error(f"more than {_MAX_TUPLES} tuples are used as dictionary keys or set elements")
        if len(key) > _MAX_TUPLE:
            raise self.error(f"a tuple of {len(key)} elements is used as a key, and the limit is {_MAX_TUPLE}")
        for element in key:
            if type(element) is tuple or type(element) is Size:
                raise self.error("a nested tuple is used as a dictionary key or set element")
            self.check(element)
