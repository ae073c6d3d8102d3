"""Gradual types of tensors: sizes that are known, and `Dyn` for what is not.

In: annotations of a traced program, `x: TensorType((1, Dyn))`. Out: the relations of types that
`experimental.graph_gradual_typechecker` works with. Definition: Siek and Taha, "Gradual Typing for Functional Languages", 2006,
with tensor types as tuples of sizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """A type of tensors: a size, or `Dyn`, for each dimension. `TensorType((2, Dyn))` is `TensorType[2, Dyn]`."""

    def __init__(self, dim: Iterable[Any]):
        self.__args__ = tuple(dim)

    def __class_getitem__(cls, dim: Any) -> TensorType:
        return cls(dim if isinstance(dim, tuple) else (dim,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and self.__args__ == other.__args__

    def __hash__(self) -> int:
        return hash((TensorType, self.__args__))

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"


class _DynType:
    """The type of everything: also the size of a dimension that is not known."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()
"""The type of a value, or a size, that is not known."""


def is_consistent(t1: Any, t2: Any) -> bool:
    """Return whether some value has both types: whether they are equal where both are known."""
    if t1 == t2 or Dyn in (t1, t2):
        return True
    if not isinstance(t1, TensorType) or not isinstance(t2, TensorType) or len(t1.__args__) != len(t2.__args__):
        return False
    return all(map(is_consistent, t1.__args__, t2.__args__))


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Return whether `t1` says all that `t2` says."""
    if t1 == t2 or t2 == Dyn:
        return True
    if not isinstance(t1, TensorType) or not isinstance(t2, TensorType) or len(t1.__args__) != len(t2.__args__):
        return False
    return all(map(is_more_precise, t1.__args__, t2.__args__))
