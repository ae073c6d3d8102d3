"""Operators that a capture records as others, because what they take or give is nothing that a graph holds.

A rule gets the operator's arguments and calls others in its place; it returns NotImplemented where the operator itself is to be
recorded. Rules stand where the operators are defined.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.ops.dispatcher import OpOverload

CAPTURE_RULES: dict[OpOverload, Callable] = {}
