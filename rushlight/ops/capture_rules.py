"""Operators that a capture replaces by others, because a graph cannot hold their arguments or results.

A rule gets the operator's arguments and calls the replacements. It returns NotImplemented if the operator itself should be
recorded. Rules are defined next to their operators.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.ops.dispatcher import OpOverload

CAPTURE_RULES: dict[OpOverload, Callable] = {}
