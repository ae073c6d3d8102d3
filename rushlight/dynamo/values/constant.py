"""Constants: immutable values that are fully known."""

from __future__ import annotations

import operator
import re
import types
import typing
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.layout import layout, memory_format
from rushlight.core.symbolic import UnknownSizeError
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.process_facts import note, note_text
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import BINARY, COMPARISONS, MAKERS, Raised, Value

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

# Outside values of these types are guarded by value.
BY_VALUE = (int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented))
# Values of these types are compared by identity.
BY_IDENTITY = (dtype, layout, memory_format, types.CodeType, types.UnionType, types.GenericAlias)
NUMPY_NUMBERS = (np.number, np.bool_)
_CONSTANT = (*BY_IDENTITY, *NUMPY_NUMBERS, np.dtype, device, re.Pattern, re.Match, Enum)


class ConstantValue(Value):
    """A number, string, None, dtype, device and the like."""

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def python_type(self) -> type:
        return type(self.value)

    def is_constant(self) -> bool:
        return True

    def constant(self) -> Any:
        return self.value

    def truth(self, tx: Following) -> bool:
        return bool(self.value)

    def length(self, tx: Following) -> Value:
        return fold(len, self)

    def items_of(self, tx: Following) -> list[Value]:
        if isinstance(self.value, str | bytes):
            return [ConstantValue(item) for item in self.value]
        raise raised(TypeError(f"'{type(self.value).__name__}' object is not iterable"))

    def attribute(self, tx: Following, name: str) -> Value:
        if name == "__class__":
            return tx.wrap_class(type(self.value))
        if isinstance(self.value, types.UnionType | types.GenericAlias):
            return tx.wrap_constant_attribute(self.value, name)
        if isinstance(getattr(self.value, name, None), types.BuiltinMethodType | types.MethodWrapperType):
            return tx.bound_method(self, name)
        return fold(getattr, self, ConstantValue(name))

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "join" and isinstance(self.value, str) and len(args) == 1:
            args = [constant_list(args[0].items_of(tx))]
        return fold(getattr(self.value, name), *args, **kwargs)

    def item(self, tx: Following, key: Value) -> Value:
        if not key.is_constant() and hasattr(key.python_type(), "__index__"):
            key = key.method(tx, "__index__", [], {})
        return fold(operator.getitem, self, key)

    def same_as(self, other: Value) -> bool:
        if other.is_constant():
            return self.value is other.constant()
        return False

    def node(self, tx: Following) -> Any:
        return self.value.item() if isinstance(self.value, NUMPY_NUMBERS) else self.value

    def write(self, writer: Writer) -> str:
        return writer.literal(self.value)

    def __str__(self) -> str:
        return repr(self.value)


NONE = ConstantValue(None)


def is_none(value: Value) -> bool:
    """Return whether a value is known to be None."""
    return isinstance(value, ConstantValue) and value.value is None


class FixedValue(Value):
    """A function, class or module: fully known, compared by identity."""

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def python_type(self) -> type:
        return type(self.value)

    def is_constant(self) -> bool:
        return True

    def constant(self) -> Any:
        return self.value

    def truth(self, tx: Following) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return other.is_constant() and other.constant() is self.value

    def write(self, writer: Writer) -> str:
        return writer.name_of(self.value, getattr(self.value, "__name__", "builtin").replace(".", "_"))


class AnnotationValue(FixedValue):
    """An annotation object of `typing`: `Union`, `list[int]`, a type variable."""

    def attribute(self, tx: Following, name: str) -> Value:
        return tx.wrap_constant_attribute(self.value, name)

    def item(self, tx: Following, key: Value) -> Value:
        try:
            return tx.wrap_constant(self.value[key.snapshot()])
        except TypeError as error:
            raise raised(error) from None


ANNOTATIONS = (typing._Final, typing.TypeVar)  # typing._Final is a base of all others


def constant_list(values: list[Value]) -> Value:
    """Return a list of constants, as one constant."""
    return ConstantValue([value.constant() for value in values])


def is_constant_value(value: object) -> bool:
    """Return whether a Python value may be tracked as a constant."""
    kind = type(value)
    if isinstance(value, BY_VALUE):  # a user's subclass may behave differently
        return kind in BY_VALUE or isinstance(value, (*NUMPY_NUMBERS, Enum))
    return isinstance(value, _CONSTANT)


def constant_of(value: Any) -> Value:
    """Track an object for which `is_constant_value` holds."""
    return MAKERS[Enum](value) if isinstance(value, Enum) else ConstantValue(value)


# Functions of open integers whose results stay symbolic.
_operand, _snapshot = operator.methodcaller("operand"), operator.methodcaller("snapshot")
_SYMBOLIC_FUNCTIONS = frozenset({
    *BINARY.values(), *COMPARISONS.values(), operator.neg, operator.pos, operator.index, abs, divmod,
})  # fmt: skip


def fold(function: Any, *args: Value, **kwargs: Value) -> Value:
    """Call a pure function of constants. `Raised` if it raises, GraphBreak if its result is no constant."""
    read = _operand if function in _SYMBOLIC_FUNCTIONS else _snapshot
    values = [read(value) for value in args]
    named = {name: read(value) for name, value in kwargs.items()}
    try:
        result = function(*values, **named)
    except GraphBreak:
        raise
    except UnknownSizeError as error:
        raise GraphBreak(str(error)) from None
    except Exception as error:
        raise raised(error) from None
    if function is hash:
        note()
    note_text(result)
    return from_python(result)


def from_python(result: Any) -> Value:
    """Track a fresh Python value made of plain parts or tracked values."""
    if isinstance(result, Value):
        return result
    if is_constant_value(result):
        return constant_of(result)
    maker = MAKERS.get(type(result))
    if maker is not None:
        return maker(result)
    raise GraphBreak(f"a value of type {type(result).__name__}")


def raised(error: BaseException) -> Raised:
    """Convert a real exception to one of the followed program."""
    return Raised(MAKERS[BaseException](error))


def from_python_or_text(value: Any) -> Value:
    """Track a plain value; track anything else as its text."""
    try:
        return from_python(value)
    except GraphBreak:
        return ConstantValue(str(value))
