"""Write arguments as Python source. In: a constant, node or container. Out: an expression that evaluates to it."""

from __future__ import annotations

import cmath
import enum
import json
from collections.abc import Callable
from types import NoneType
from typing import Any

from rushlight.core.naming import own_module
from rushlight.fx.node import Node

_LITERALS = (str, int, float, bool, NoneType, bytes, range, type(Ellipsis))


def format_value(value: Any, global_name: Callable[[Any], str]) -> str:
    """Return the source of `value`; `global_name` names values without a literal form (functions, types, other objects)."""
    if isinstance(value, Node):
        return value.name
    if isinstance(value, tuple):
        return _format_tuple(value, global_name)
    if isinstance(value, list):
        return "[" + ", ".join(format_value(item, global_name) for item in value) + "]"
    if isinstance(value, dict):
        items = (f"{format_value(key, global_name)}: {format_value(item, global_name)}" for key, item in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, slice):
        parts = (format_value(part, global_name) for part in (value.start, value.stop, value.step))
        return f"slice({', '.join(parts)})"
    if isinstance(value, enum.Enum):
        return f"{global_name(type(value))}.{value.name}"
    return _format_leaf(value, global_name)


def _format_tuple(value: tuple, global_name: Callable[[Any], str]) -> str:
    items = [format_value(item, global_name) for item in value]
    if hasattr(value, "_fields"):
        return f"{global_name(type(value))}({', '.join(items)})"
    literal = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return literal if type(value) is tuple else f"{global_name(type(value))}({literal})"


def _format_leaf(value: Any, global_name: Callable[[Any], str]) -> str:
    if type(value) in _LITERALS:
        return repr(value)
    if type(value) is complex:
        return repr(value) if cmath.isfinite(value) else f"complex({value.real!r}, {value.imag!r})"
    if own_module(type(value)).startswith("rushlight."):
        text = repr(value)
        # dtypes, layouts and memory formats print as torch.float32; devices as device(type='cpu').
        if text.startswith("torch.") or type(value).__name__ == "device":
            return text
    return global_name(value)


def attribute_path(root: str, path: str) -> str:
    """Return the source that reads a dotted path: `self.encoder.weight`, or `getattr(self.layers, "0")`."""
    source = root
    for atom in path.split("."):
        source = f"{source}.{atom}" if atom.isidentifier() else f"getattr({source}, {json.dumps(atom, ensure_ascii=False)})"
    return source
