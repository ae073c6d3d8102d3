"""Handlers: tables that say how captures follow calls of certain functions. Other modules fill them, at import or during a
capture."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import CodeType

HANDLERS: dict[Hashable, Callable] = {}
"""Function -> handler of its calls, which takes the translator and the tracked arguments."""

METHODS: dict[str, Callable] = {}
"""Name of a tensor method -> handler of its calls."""

CLOSURES: dict[CodeType, Callable] = {}
"""Code of a library wrapper around the program's function -> handler of its calls. The handler takes the translator, the
closure's values by name, and the tracked arguments as a list and a dict."""

ALLOWED_IN_GRAPH: dict[int, Callable] = {}
"""id() -> function of the program whose calls become graph nodes without being followed."""

SUBSTITUTED: list[Callable] = []
"""Functions for which a program registered substitutes to follow instead."""
