"""annotate: give the node of a value a type while a program is traced."""

from __future__ import annotations

from typing import Any

from rushlight.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:  # noqa: A002 - torch's name
    """Set the type of a proxy's node, and return `val`; other values are returned unchanged. RuntimeError if it has a type
    already."""
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type}")
        val.node.type = type
    return val
