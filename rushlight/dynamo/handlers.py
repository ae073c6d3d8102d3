"""What captures do at calls of certain functions: tables that others fill, before anything is captured or while it is."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import CodeType

HANDLERS: dict[Hashable, Callable] = {}
"""By function: what follows a call of it, given the translator and the tracked arguments."""

METHODS: dict[str, Callable] = {}
"""By name of a tensor's method, the same for a call of it."""

CLOSURES: dict[CodeType, Callable] = {}
"""By code of functions that the library makes around the program's own: what follows a call, given the translator, the values
of the variables that they close over, by name, and the tracked arguments as a list and a dict."""

ALLOWED_IN_GRAPH: dict[int, Callable] = {}
"""Functions of a program, by their ids, whose calls become nodes as they are."""

SUBSTITUTED: list[Callable] = []
"""Functions in whose place a program has others followed."""
