"""Exceptions of the followed program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.values.base import MAKERS, Value
from rushlight.dynamo.values.constant import ConstantValue, from_python_or_text
from rushlight.dynamo.values.containers import SequenceValue

if TYPE_CHECKING:
    from rushlight.dynamo.program import ProgramWriter
    from rushlight.dynamo.translator import Translator


class ExceptionValue(Value):
    """An instance of an exception class that the program made or that one of its operations raised."""

    def __init__(self, kind: type, arguments: list[Value]) -> None:
        self.kind = kind
        self.arguments = arguments
        self.attributes: dict[str, Value] = {}

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Translator) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return self is other

    def attribute(self, tx: Translator, name: str) -> Value:
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
        return tx.bound_method(self, name)

    def set_attribute(self, tx: Translator, name: str, value: Value) -> None:
        self.attributes[name] = value

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "with_traceback":
            return self
        if name == "__str__":
            return ConstantValue(str(self.real()))
        return super().method(tx, name, args, kwargs) if name in self.attributes else _unknown(self, name)

    def real(self) -> BaseException:
        """The exception itself; its arguments must be constants."""
        return self.kind(*[argument.constant() for argument in self.arguments])

    def write(self, writer: ProgramWriter) -> str:
        arguments = ", ".join(writer.expression(argument) for argument in self.arguments)
        return f"{writer.name_of(self.kind, self.kind.__name__)}({arguments})"

    def __str__(self) -> str:
        return f"{self.kind.__name__}({', '.join(map(str, self.arguments))})"


class HandledValue(Value):
    """What the stack keeps below an exception that is being handled: here, the exception itself."""

    def __init__(self, error: Value) -> None:
        self.error = error

    def write(self, writer: ProgramWriter) -> str:
        return writer.expression(self.error)


def _unknown(value: Value, name: str) -> Any:
    return Value.attribute(value, None, name)


def from_exception(error: BaseException) -> ExceptionValue:
    """The tracked value of a real exception."""
    return ExceptionValue(type(error), [from_python_or_text(argument) for argument in error.args])


MAKERS[BaseException] = from_exception
