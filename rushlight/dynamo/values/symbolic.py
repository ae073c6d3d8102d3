"""Open integers: sizes of inputs, results computed from them, and ints from outside that change.

Arithmetic and comparisons stay symbolic, a truth value is guarded, and operations of the graph get a node. Any other use
specializes the integer to its example value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.core.symbolic import SymInt
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


# Methods that convert a number to an integer.
ROUNDINGS = frozenset({"__int__", "__trunc__", "__floor__", "__ceil__"})


class SymbolicValue(ConstantValue):
    """An open integer. Its use as a constant specializes it."""

    def __init__(self, number: SymInt, source: Source | None = None) -> None:
        self.number = number
        self.source = source

    @property
    def value(self) -> int:
        """Return the example value, which is guarded from now on."""
        return int(self.number)

    def operand(self) -> Any:
        return self.number

    def python_type(self) -> type:
        return int

    def truth(self, tx: Following) -> bool:
        return bool(self.number)

    def same_as(self, other: Value) -> bool:
        return self is other or super().same_as(other)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self if name in ROUNDINGS else super().method(tx, name, args, kwargs)

    def node(self, tx: Following) -> Any:
        return tx.graph.symbols.node_of(self.number)

    def write(self, writer: Writer) -> str:
        return writer.symbolic(self.number)

    def __str__(self) -> str:
        return repr(self.number)

