"""The base of tracked values: what every kind of value can be asked while a frame is followed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source

if TYPE_CHECKING:
    from rushlight.dynamo.program import ProgramWriter
    from rushlight.dynamo.translator import Translator


class Value:
    """What is known of one Python value. `source` says how the frame reaches it; None for values made by the program.

    A method that a kind of value does not answer breaks the graph.
    """

    source: Source | None = None
    is_of_library = False  # whether it is state of this library, which may only be read

    def python_type(self) -> type:
        """The value's type."""
        raise GraphBreak(f"the type of {self} is not known")

    def is_constant(self) -> bool:
        """Whether `constant` may be called."""
        return False

    def constant(self) -> Any:
        """The Python value itself, for values that are known completely and never change."""
        raise GraphBreak(f"{self} is not a constant")

    def operand(self) -> Any:
        """The same for arithmetic and comparisons, where an open integer stays open."""
        return self.constant()

    def snapshot(self) -> Any:
        """The value as it is now, for functions that only look at it."""
        return self.constant()

    def truth(self, tx: Translator) -> bool:
        """`bool(value)`."""
        raise GraphBreak(f"the truth value of {self} is not known")

    def length(self, tx: Translator) -> Value:
        """`len(value)`."""
        raise GraphBreak(f"the length of {self} is not known")

    def items_of(self, tx: Translator) -> list[Value]:
        """All values that iterating yields."""
        raise GraphBreak(f"cannot iterate over {self}")

    def iterator(self, tx: Translator) -> Value | None:
        """`iter(value)` for values that are followed while they are iterated over; None for others."""
        return None

    def attribute(self, tx: Translator, name: str) -> Value:
        """`value.name`."""
        raise GraphBreak(f"attribute {name!r} of {self}")

    def set_attribute(self, tx: Translator, name: str, value: Value) -> None:
        """`value.name = ...`."""
        raise GraphBreak(f"writing attribute {name!r} of {self}")

    def delete_attribute(self, tx: Translator, name: str) -> None:
        """`del value.name`."""
        raise GraphBreak(f"deleting attribute {name!r} of {self}")

    def item(self, tx: Translator, key: Value) -> Value:
        """`value[key]`."""
        raise GraphBreak(f"an item of {self}")

    def set_item(self, tx: Translator, key: Value, value: Value) -> None:
        """`value[key] = ...`."""
        raise GraphBreak(f"writing an item of {self}")

    def delete_item(self, tx: Translator, key: Value) -> None:
        """`del value[key]`."""
        raise GraphBreak(f"deleting an item of {self}")

    def call(self, tx: Translator, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """`value(*args, **kwargs)`."""
        raise GraphBreak(f"a call of {self}")

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """`value.name(*args, **kwargs)`."""
        return self.attribute(tx, name).call(tx, args, kwargs)

    def same_as(self, other: Value) -> bool:
        """`value is other`."""
        if self is other:
            return True
        raise GraphBreak(f"whether {self} is {other} is not known")

    def node(self, tx: Translator) -> Any:
        """What stands for the value among the arguments of a graph's node."""
        raise GraphBreak(f"{self} cannot be an argument of an operation in the graph")

    def write(self, writer: ProgramWriter) -> str:
        """An expression of generated code that makes the value; it may add statements before."""
        raise GraphBreak(f"{self} cannot be made again in generated code")

    def __str__(self) -> str:
        return type(self).__name__ + (f" from {self.source}" if self.source else "")


class PendingValue(Value):
    """A value from outside that nothing has looked at: `make` wraps it, and guards it, at its first use."""

    def __init__(self, make: Callable[[], Value], source: Source, kind: type) -> None:
        self.make = make
        self.source = source
        self.kind = kind
        self.made: Value | None = None

    def realize(self) -> Value:
        """The tracked value."""
        if self.made is None:
            self.made = self.make()
            del self.make  # which may hold this value
        return self.made


def has_finalizer(value: Value | None) -> bool:
    """Whether a value is an object from outside with `__del__`, so that it matters when the program lets go of it."""
    if type(value) is PendingValue:
        return hasattr(value.kind, "__del__")
    return value is not None and value.source is not None and hasattr(getattr(value, "kind", None), "__del__")


def realized(value: Value) -> Value:
    """The value itself for one that was pending."""
    return value.realize() if type(value) is PendingValue else value


def realize_all(values: list[Value]) -> list[Value]:
    """The list, whose pending values have been replaced."""
    for index, value in enumerate(values):
        if type(value) is PendingValue:
            values[index] = value.realize()
    return values


class NullValue(Value):
    """The NULL that the interpreter keeps below a callable on the stack."""

    def __str__(self) -> str:
        return "NULL"


NULL = NullValue()

BINARY: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
IN_PLACE: dict[str, Callable] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul, "<<=": operator.ilshift, ">>=": operator.irshift,
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
}  # fmt: skip
COMPARISONS: dict[str, Callable] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

# For each type of plain Python values, how a fresh one becomes a tracked value. The modules of the kinds fill it.
MAKERS: dict[type, Callable[[Any], Value]] = {}
