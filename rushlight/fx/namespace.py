"""Unique Python identifiers for the nodes of a graph and the globals of its generated code."""

from __future__ import annotations

import builtins
import keyword
import re
from functools import lru_cache

_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_SUFFIX = re.compile(r"(.*)_(\d+)")
_CAPITAL_AFTER_SMALL = re.compile(r"(?<=[a-z])(?=[A-Z])")

# Names that generated code itself uses, and Python's own.
RESERVED = frozenset({"self", "torch", "device", "inf", "nan", *keyword.kwlist, *dir(builtins)})


class Namespace:
    """Creates identifiers that are legal, not reserved and not used before."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._last_suffix: dict[str, int] = {}

    def create_name(self, candidate: str) -> str:
        """Return `candidate` as an identifier; if it is not free, a number is appended (or its number is raised)."""
        if not (candidate.isascii() and candidate.isidentifier()):
            candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = _SUFFIX.fullmatch(candidate) if candidate[-1].isdigit() else None
        base, number = (match[1], int(match[2])) if match else (candidate, None)
        if number is None or candidate in self._used:
            number = self._last_suffix.get(base, 0) if number is None else number
            while candidate in self._used or candidate in RESERVED:
                number += 1
                candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._last_suffix[base] = max(number, self._last_suffix.get(base, 0))
        return candidate

    def reserve(self, name: str) -> None:
        """Mark a name as used."""
        self._used.add(name)


@lru_cache(maxsize=1024)
def snake_case(name: str) -> str:
    """Return `LayerNorm` -> `layer_norm`, `L['x']` -> `l_x_`, `__add__` -> `add`."""
    if name.startswith("__") and name.endswith("__") and len(name) > 4:
        name = name[2:-2]
    return _CAPITAL_AFTER_SMALL.sub("_", _ILLEGAL.sub("_", name)).lower()
