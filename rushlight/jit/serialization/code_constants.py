"""Constants in printed code: literals, and `CONSTANTS.c0` for tensors and other values without a literal.

In: the values of `prim::Constant`s and defaults. Out: text. The table of constants belongs to the whole archive. Stage: jit,
printing.
"""

from __future__ import annotations

import enum
import math

from rushlight.core.device import device
from rushlight.core.tensor import Tensor
from rushlight.jit.constants import ENUM_TYPES
from rushlight.jit.function import Function
from rushlight.jit.ir.printer import float_text, quoted
from rushlight.jit.runtime.objects import ExtensionObject
from rushlight.jit.serialization.code_names import TypeTable
from rushlight.jit.types.kinds import TENSOR, DictType, ListType, OptionalType, TupleType, Type


class ConstantTable:
    """The constants of an archive, by number, with their types."""

    def __init__(self) -> None:
        self.values: list[tuple[object, Type]] = []

    def name_of(self, value: object, kind: Type) -> str:
        """Return `CONSTANTS.cN`; the same object has one number."""
        for number, (known, _) in enumerate(self.values):
            if known is value or (isinstance(value, str) and known == value):
                return f"CONSTANTS.c{number}"
        self.values.append((value, kind))
        return f"CONSTANTS.c{len(self.values) - 1}"


def constant_text(value: object, kind: Type, constants: ConstantTable, types: TypeTable) -> str:
    """Return a constant of a type as an expression."""
    if isinstance(value, Tensor | ExtensionObject) or (isinstance(value, str) and not value.isascii()):
        return constants.name_of(value, kind)
    if isinstance(value, Function):
        return types.name_of(value)
    if isinstance(value, enum.Enum):
        return f"{types.name_of(ENUM_TYPES[type(value)])}.{value.name}"
    if isinstance(kind, OptionalType) and value is not None:
        kind = kind.element
    if isinstance(value, list):
        return _list_text(value, kind, constants, types)
    if isinstance(value, dict):
        return _dict_text(value, kind, constants, types)
    if isinstance(value, tuple):
        kinds = kind.elements if isinstance(kind, TupleType) else [TENSOR] * len(value)
        parts = [constant_text(item, each, constants, types) for item, each in zip(value, kinds, strict=True)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return plain_text(value)


def plain_text(value: object) -> str:
    """Return a number, a string, None, or a device."""
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, complex):
        return _complex_text(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, device):
        return f'torch.device("{value}")'
    return str(value)


def number_text(value: float) -> str:
    """Return a float with all its digits; `inf` and `nan` are names there."""
    return float_text(value) if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _complex_text(value: complex) -> str:
    imaginary = number_text(abs(value.imag)) if not math.isnan(value.imag) else "nan"
    sign = "-" if math.copysign(1.0, value.imag) < 0 else "+"
    return f"{number_text(value.real)}{sign}{imaginary}j"


def _list_text(value: list, kind: Type, constants: ConstantTable, types: TypeTable) -> str:
    element = kind.element if isinstance(kind, ListType) else TENSOR
    text = f"[{', '.join(constant_text(item, element, constants, types) for item in value)}]"
    return f"annotate({types.text(kind)}, {text})" if not value or needs_annotation(element) else text


def _dict_text(value: dict, kind: Type, constants: ConstantTable, types: TypeTable) -> str:
    key, item = (kind.key, kind.value) if isinstance(kind, DictType) else (TENSOR, TENSOR)
    pairs = [f"{constant_text(a, key, constants, types)}: {constant_text(b, item, constants, types)}" for a, b in value.items()]
    return f"annotate({types.text(kind)}, {{{', '.join(pairs)}}})"


def needs_annotation(kind: Type) -> bool:
    """Return whether a container literal needs an annotation, because its elements would be inferred to have a narrower
    type.
    """
    return kind.kind() in ("OptionalType", "UnionType", "NumberType", "AnyType", "InterfaceType", "AnyEnumType")
