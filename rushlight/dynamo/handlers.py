"""What captures do at calls of certain functions: tables that others fill, before anything is captured or while it is."""

from __future__ import annotations

from collections.abc import Callable, Hashable

HANDLERS: dict[Hashable, Callable] = {}
"""By function: what follows a call of it, given the translator and the tracked arguments."""

ALLOWED_IN_GRAPH: dict[int, Callable] = {}
"""Functions of a program, by their ids, whose calls become nodes as they are."""

SUBSTITUTED: list[Callable] = []
"""Functions in whose place a program has others followed."""
