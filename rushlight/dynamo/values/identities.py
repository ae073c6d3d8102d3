"""Values as dict keys, and their `id`: compared by identity, though the object may not exist before the graph has run."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.values.base import BINARY, Value
from rushlight.dynamo.values.constant import ConstantValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Writer


class Identity:
    """Stands for a value's object among the keys of tracked dicts."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _unknown(*_: Any) -> Any:
    raise GraphBreak("arithmetic on the id of an object")


for _function in (operator.lt, operator.le, operator.gt, operator.ge, operator.neg, operator.index, *BINARY.values()):
    setattr(Identity, f"__{_function.__name__.strip('_')}__", _unknown)


def identity_of(value: Value) -> Identity:
    """Return the key of a value; each value has exactly one."""
    if not hasattr(value, "identity"):
        value.identity = Identity(value)
    return value.identity


class IdValue(ConstantValue):
    """`id(value)`."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)

    def python_type(self) -> type:
        return int

    def write(self, writer: Writer) -> str:
        return f"id({writer.expression(self.value.value)})"

    def __str__(self) -> str:
        return f"the id of {self.value.value}"
