"""Types of plain annotations in Python's syntax trees: `Tensor`, `List[int]`, `__torch__.Net`. `jit/annotations.py` handles the
others.

In: a node of Python's `ast`, and a function that finds classes. Out: a type, or None for other expressions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from rushlight.jit.types.kinds import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    NUMBER,
    STORAGE,
    STREAM,
    STRING,
    TENSOR,
    DictType,
    EnumType,
    ListType,
    TupleType,
    Type,
)
from rushlight.jit.types.relations import optional

NAMED = {
    "Tensor": TENSOR, "int": INT, "float": FLOAT, "bool": BOOL, "complex": COMPLEX, "str": STRING, "NoneType": NONE,
    "None": NONE, "Any": ANY, "Device": DEVICE, "device": DEVICE, "number": NUMBER, "Scalar": NUMBER, "Generator": GENERATOR,
    "Stream": STREAM, "Storage": STORAGE, "dtype": INT, "layout": INT, "memory_format": INT, "Size": ListType(INT),
}  # fmt: skip
"""Types by the names that annotations have for them."""
Find = Callable[[str], Type | None]


def is_key_type(kind: Type) -> bool:
    """Return whether a type can be a dict's key type."""
    return kind in (INT, FLOAT, COMPLEX, STRING, BOOL, DEVICE, TENSOR, ANY) or isinstance(kind, EnumType)


def plain_type(node: ast.expr | None, find: Find) -> Type | None:
    """Return the type that an expression denotes; None if it is no plain annotation."""
    if isinstance(node, ast.Name):
        return NAMED.get(node.id)
    if isinstance(node, ast.Attribute):
        name = _dotted_name(node)
        return find(name) if name is not None and name.startswith("__torch__.") else None
    if isinstance(node, ast.Constant) and node.value is None:
        return NONE
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        listed = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _parse_generic(node.value.id, [plain_type(each, find) for each in listed])
    return None


def _dotted_name(node: ast.expr) -> str | None:
    """Return `a.b.c`; None for any other expression."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else None


def _parse_generic(name: str, parts: list[Type | None]) -> Type | None:
    if not parts or None in parts:
        return None
    if name == "Tuple":
        return TupleType(tuple(parts))
    if name == "Dict" and len(parts) == 2 and is_key_type(parts[0]):
        return DictType(*parts)
    if len(parts) != 1:
        return None
    if name == "Final":
        return parts[0]
    return ListType(parts[0]) if name == "List" else optional(parts[0]) if name == "Optional" else None
