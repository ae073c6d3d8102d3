"""Numbers that the graph computes: results of `item()`, arithmetic on them, and comparisons of data-dependent sizes.

They are nodes of the graph, with values known only at run time. A use that needs the number itself, such as a branch, breaks
the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.core.symbolic import SymBool, SymInt
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.unknown_values import rounded
from rushlight.dynamo.values.base import MAKERS, Value
from rushlight.dynamo.values.constant import ConstantValue
from rushlight.dynamo.values.symbolic import ROUNDINGS, SymbolicValue
from rushlight.fx.node import Node

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

_HINT = "say what holds of it by torch._check(...), use torch.where, or keep the branch outside of the compiled part"


class UnknownIntegerValue(SymbolicValue):
    """An integer that the graph computes, or arithmetic on one: stays symbolic."""

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__float__" and not args:
            return later(tx, float, [self])
        return super().method(tx, name, args, kwargs)

    def node(self, tx: Following) -> Any:
        return tx.graph.symbols.node_of(self.number)

    def write(self, writer: Writer) -> str:
        return writer.result(writer.node_of(self.number))


class UnknownTruthValue(Value):
    """A comparison of integers that the graph computes."""

    def __init__(self, question: SymBool) -> None:
        self.question = question

    def python_type(self) -> type:
        return bool

    def truth(self, tx: Following) -> bool:
        raise GraphBreak(f"a branch on {self.question}, which depends on values that the graph computes", _HINT)

    def __str__(self) -> str:
        return f"whether {self.question}"


class LaterNumberValue(Value):
    """A float that the graph computes; `hint` is its value for the example inputs."""

    def __init__(self, node: Node, hint: float) -> None:
        self.graph_node = node
        self.hint = hint

    def python_type(self) -> type:
        return type(self.hint)

    def truth(self, tx: Following) -> bool:
        raise GraphBreak("a branch on a number that the graph computes from tensors", _HINT)

    def same_as(self, other: Value) -> bool:
        return self is other

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in ("__float__", "item") and not args:
            return self
        if name in ROUNDINGS and not args:
            function = {"__floor__": math.floor, "__ceil__": math.ceil}.get(name, rounded)
            number = tx.graph.environment.create_unknown(function(self.hint), None)
            tx.graph.symbols.bind(number, tx.graph.add(function, (self.graph_node,), number))
            return UnknownIntegerValue(number)
        raise GraphBreak(f"{name}() of a number that the graph computes")

    def node(self, tx: Following) -> Any:
        return self.graph_node

    def write(self, writer: Writer) -> str:
        return writer.result(self.graph_node)

    def __str__(self) -> str:
        return f"the number {self.graph_node.name}"


def is_later(value: Value) -> bool:
    """Return whether a value is a number that the graph computes."""
    return isinstance(value, LaterNumberValue | UnknownIntegerValue)


def later(tx: Following, function: Callable, values: list[Value]) -> Value | None:
    """Return a pure function of numbers as a node; None if the graph computes none of them, or if they are integers that stay
    symbolic."""
    if not any(map(is_later, values)) or not all(is_later(value) or _is_number(value) for value in values):
        return None
    hints = [_hint_of(value) for value in values]
    try:
        hint = function(*hints)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise GraphBreak(f"{getattr(function, '__name__', function)} of a number that the graph computes: {error}") from None
    if type(hint) is int or type(hint) is bool and not any(isinstance(value, LaterNumberValue) for value in values):
        return None
    if type(hint) not in (float, bool):
        return None
    return LaterNumberValue(tx.graph.add(function, tuple([value.node(tx) for value in values]), hint), hint)


def _is_number(value: Value) -> bool:
    return value.is_constant() and value.python_type() in (int, float, bool)


def _hint_of(value: Value) -> Any:
    if isinstance(value, LaterNumberValue):
        return value.hint
    return value.number.hint if isinstance(value, SymbolicValue) else value.constant()


MAKERS[SymInt] = lambda number: (UnknownIntegerValue if number.is_unknown else SymbolicValue)(number)


def _truth(question: SymBool) -> Value:
    is_unknown = question.environment.is_unknown(question.relation.expression)
    return UnknownTruthValue(question) if is_unknown else ConstantValue(bool(question))


MAKERS[SymBool] = _truth
