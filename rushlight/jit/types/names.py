"""The types of TorchScript under PyTorch's names; singleton types have `get()`: `torch.IntType.get()`."""

from __future__ import annotations

from rushlight.jit.types import kinds
from rushlight.jit.types.kinds import (
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    RRefType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)

__all__ = [
    "AnyType", "AwaitType", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "EnumType", "FloatType",
    "FutureType", "IntType", "InterfaceType", "ListType", "NoneType", "NumberType", "OptionalType", "RRefType",
    "StreamObjType", "StringType", "TensorType", "TupleType", "Type", "UnionType",
]  # fmt: skip


class _Single(type):
    """The metaclass of singleton types."""

    only: Type

    def get(cls) -> Type:
        """Return the type."""
        return cls.only

    def __instancecheck__(cls, value: object) -> bool:
        return value == cls.only


def _single(name: str, only: Type) -> _Single:
    return _Single(name, (), {"only": only, "__doc__": f"TorchScript's type `{only}`.", "__module__": "torch"})


AnyType = _single("AnyType", kinds.ANY)
BoolType = _single("BoolType", kinds.BOOL)
ComplexType = _single("ComplexType", kinds.COMPLEX)
DeviceObjType = _single("DeviceObjType", kinds.DEVICE)
FloatType = _single("FloatType", kinds.FLOAT)
IntType = _single("IntType", kinds.INT)
NoneType = _single("NoneType", kinds.NONE)
NumberType = _single("NumberType", kinds.NUMBER)
StreamObjType = _single("StreamObjType", kinds.STREAM)
StringType = _single("StringType", kinds.STRING)
