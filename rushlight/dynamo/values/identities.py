"""Values as keys of dicts, and their `id`: told by which object they are, which may not exist before the graph has run."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.values.base import BINARY, Value
from rushlight.dynamo.values.constant import ConstantValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Writer


class Identity:
    """Stands for the object of a tracked value among the keys of followed dicts."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _unknown(*_: Any) -> Any:
    raise GraphBreak("arithmetic on the id of an object")


for _function in (operator.lt, operator.le, operator.gt, operator.ge, operator.neg, operator.index, *BINARY.values()):
    setattr(Identity, f"__{_function.__name__.strip('_')}__", _unknown)


def identity_of(value: Value) -> Identity:
    """The key that stands for a value, the same at each call."""
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
