"""Exceptions of the followed program."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Attribute
from rushlight.dynamo.stability import MISSING, look_up
from rushlight.dynamo.values.base import MAKERS, Value
from rushlight.dynamo.values.constant import NONE, ConstantValue, from_python_or_text
from rushlight.dynamo.values.function import BoundMethodValue, NamedMethodValue
from rushlight.dynamo.values.sequences import SequenceValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


class ExceptionValue(Value):
    """An instance of an exception class that the program made or that one of its operations raised."""

    def __init__(self, kind: type, arguments: list[Value]) -> None:
        self.kind = kind
        self.arguments = arguments
        self.attributes: dict[str, Value] = {}

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Following) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return self is other

    def attribute(self, tx: Following, name: str) -> Value:
        if name == "args":
            return SequenceValue(list(self.arguments), tuple)
        if name in self.attributes:
            return self.attributes[name]
        if name in ("__context__", "__traceback__", "__suppress_context__"):
            raise GraphBreak(f"attribute {name!r} of an exception")
        if name == "__cause__":
            return ConstantValue(None)
        if name == "__class__":
            return tx.wrap_class(self.kind)
        if name == "value" and issubclass(self.kind, StopIteration):
            return self.arguments[0] if self.arguments else ConstantValue(None)
        found = look_up(self.kind, name)
        if isinstance(found, types.FunctionType | staticmethod | classmethod):
            member = tx.class_member(self.kind, name, found)
            if isinstance(found, staticmethod):
                return member
            return BoundMethodValue(self if isinstance(found, types.FunctionType) else tx.wrap_class(self.kind), member)
        if isinstance(found, property):
            tx.guard_member(self.kind, name, found)
            return tx.wrap_constant(found.fget).call(tx, [self], {})
        if found is not MISSING and not hasattr(type(found), "__get__"):
            return tx.wrap(found, Attribute(tx.class_source(self.kind), name))
        return tx.bound_method(self, name)

    def set_attribute(self, tx: Following, name: str, value: Value) -> None:
        if name == "args":
            self.arguments = value.items_of(tx)
            return
        if hasattr(type(look_up(self.kind, name)), "__set__") and not (name.startswith("__") or self._is_plain(name)):
            raise GraphBreak(f"writing attribute {name!r} of {self}")
        self.attributes[name] = value

    def _is_plain(self, name: str) -> bool:
        return look_up(self.kind, name) is MISSING

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "with_traceback":
            return self
        if name == "__init__" and not self.has_initializer():
            self.arguments = list(args)
            return NONE
        if name == "__str__" and not isinstance(look_up(self.kind, name), types.FunctionType):
            return ConstantValue(str(self.real()))
        if name == "add_note" and "__notes__" not in self.attributes:
            raise GraphBreak("a note to an exception")
        found = self.attribute(tx, name)
        return _unknown(self, name) if isinstance(found, NamedMethodValue) else found.call(tx, args, kwargs)

    def plain_text(self) -> str:
        """Return what `BaseException.__str__` says."""
        values = [argument.constant() for argument in self.arguments]
        return str(KeyError(*values) if issubclass(self.kind, KeyError) else Exception(*values))

    def has_initializer(self) -> bool:
        """Return whether creating one runs code of the program."""
        return any(isinstance(look_up(self.kind, name), types.FunctionType | staticmethod) for name in ("__init__", "__new__"))

    def real(self) -> BaseException:
        """Return the real exception; its arguments must be constants."""
        if self.has_initializer() or isinstance(look_up(self.kind, "__str__"), types.FunctionType):
            raise GraphBreak(f"the text of {self}, whose class has code of its own")
        return self.kind(*[argument.constant() for argument in self.arguments])

    def write(self, writer: Writer) -> str:
        arguments = ", ".join(writer.expression(argument) for argument in self.arguments)
        kind = writer.name_of(self.kind, self.kind.__name__)
        if not self.attributes and not self.has_initializer():
            return f"{kind}({arguments})"
        made = writer.begin(self, f"{kind}.__new__({kind}, {arguments})")
        writer.statement(f"{made}.args = ({arguments}{',' if self.arguments else ''})")
        for name, value in self.attributes.items():
            writer.statement(f"{made}.{name} = {writer.expression(value)}")
        return made

    def __str__(self) -> str:
        return f"{self.kind.__name__}({', '.join(map(str, self.arguments))})"


class HandledValue(Value):
    """The stack entry below an exception that is being handled; CPython keeps the previous exception there, this keeps the
    handled one."""

    def __init__(self, error: Value) -> None:
        self.error = error

    def write(self, writer: Writer) -> str:
        return writer.expression(self.error)


def _unknown(value: Value, name: str) -> Any:
    return Value.attribute(value, None, name)


def from_exception(error: BaseException) -> ExceptionValue:
    """Return the tracked value of a real exception."""
    return ExceptionValue(type(error), [from_python_or_text(argument) for argument in error.args])


MAKERS[BaseException] = from_exception
