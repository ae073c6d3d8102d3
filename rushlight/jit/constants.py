"""Constants of graphs: Python values as `prim::Constant` nodes, and back.

Dtypes, layouts and memory formats are numbers in a graph. A list or dict is a single constant only where nothing can write to
it: as an operator's default, and after constant propagation.
"""

from __future__ import annotations

import enum

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.layout import layout, memory_format
from rushlight.core.tensor import Tensor
from rushlight.jit.enumerations import LAYOUTS, MEMORY_FORMATS, dtype_number
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph, Value
from rushlight.jit.runtime.objects import ExtensionObject
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import (
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    STRING,
    TENSOR,
    DictType,
    FunctionType,
    ListType,
    TupleType,
    Type,
)

_SIMPLE = {bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX, str: STRING, type(None): NONE, device: DEVICE}
ENUM_TYPES: dict[type, Type] = {}
"""The types of the enumerations that are compiled."""


def simplified(value: object) -> object:
    """Return a Python value in a graph's form: numbers for dtypes, layouts and memory formats."""
    if isinstance(value, dtype):
        return dtype_number(value)
    if isinstance(value, layout):
        return LAYOUTS.index(value)
    if isinstance(value, memory_format):
        return MEMORY_FORMATS.index(value)
    if type(value).__name__ == "Size":
        return list(value)
    return value


def as_number_tensor(value: Tensor) -> Tensor:
    """Mark a 0-dim tensor as a Python number, which a trace holds as a tensor."""
    value.is_python_number = True
    return value


def is_number(value: object) -> bool:
    """Return whether a constant is a tensor that represents a Python number."""
    return isinstance(value, Tensor) and getattr(value, "is_python_number", False)


def constant_type(value: object) -> Type | None:
    """Return the type of a constant; None for a value that can't be a constant."""
    found = _SIMPLE.get(type(value))
    if found is not None:
        return found
    if isinstance(value, Tensor):
        return None if value.requires_grad else TENSOR
    if isinstance(value, enum.Enum):
        return ENUM_TYPES.get(type(value))
    if isinstance(value, list):
        kinds = {constant_type(item) for item in value} or {TENSOR}
        return ListType(kinds.pop()) if len(kinds) == 1 and None not in kinds else None
    if isinstance(value, tuple):
        parts = tuple(constant_type(item) for item in value)
        return None if None in parts else TupleType(parts)
    if isinstance(value, dict) and value:
        kinds = {(constant_type(key), constant_type(item)) for key, item in value.items()}
        return DictType(*kinds.pop()) if len(kinds) == 1 else None
    if isinstance(value, ExtensionObject):
        return value.type
    return FunctionType(value, value.short_name) if isinstance(value, Function) else None


def insert_constant(graph: Graph, value: object, where: SourceRange | None = None) -> Value | None:
    """Insert a constant at the insertion point; None for a value that can't be a constant."""
    value = simplified(value)
    kind = constant_type(value)
    if kind is None:
        return None
    node = graph.insert("prim::Constant")
    if where is not None:
        node.source_range = where
    if value is not None:
        node.set("value", value)
    return node.output.set_type(kind)


def constant_value(value: Value) -> object:
    """Return the value of a constant; NotImplemented for a value that is not constant."""
    return value.node.attributes.get("value") if value.node.kind == "prim::Constant" else NotImplemented
