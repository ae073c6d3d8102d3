"""Sizes while a trace goes on: ints that know which value of the graph they are, so that arithmetic on them is recorded.

In: `x.size(0)`, or an element that an operator wants as a number. Out: an int or float that behaves as any other, is recorded
as a 0-dim tensor, and becomes a number again (`aten::Int`) where an operator takes it. Comparisons give plain bools, with a
warning.
"""

from __future__ import annotations

import sys

from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.jit.constants import insert_constant
from rushlight.jit.ir.graph import Value
from rushlight.jit.tracing.frames import is_library
from rushlight.jit.tracing.state import complete_type, tracing_state
from rushlight.jit.tracing.warning import warn_constant
from rushlight.jit.types.kinds import FLOAT, INT, NUMBER, TensorType, Type
from rushlight.ops.construct import tensor
from rushlight.ops.recording import suspended

_BOOLEAN = "Python boolean"


class TracedInt(int):
    """An int of a trace; `value` is the tensor in the graph that it is."""

    value: Value

    @classmethod
    def of(cls, number: int, value: Value) -> TracedInt:
        """A number that is a value of the graph."""
        made = cls(number)
        made.value = value
        return made

    def __int__(self) -> int:
        if tracing_state() is not None and not is_library(sys._getframe(1)):
            warn_constant("Python integer")
        return int.__add__(self, 0)

    def __float__(self) -> float:
        if tracing_state() is not None and not is_library(sys._getframe(1)):
            warn_constant("Python float")
        return int.__float__(self)

    def __bool__(self) -> bool:
        if tracing_state() is not None and not is_library(sys._getframe(1)):
            warn_constant(_BOOLEAN)
        return int.__bool__(self)

    __hash__ = int.__hash__

    def __reduce__(self) -> tuple:
        return (int, (int.__add__(self, 0),))


class TracedFloat(float):
    """A float of a trace, as `TracedInt`."""

    value: Value

    @classmethod
    def of(cls, number: float, value: Value) -> TracedFloat:
        """A number that is a value of the graph."""
        made = cls(number)
        made.value = value
        return made


def as_number(traced: TracedInt | TracedFloat, kind: Type) -> Value:
    """The number of a type that an operator takes, inserted behind the tensor that it is."""
    made = traced.value.node
    word = "aten::Int" if kind == INT else "aten::Float" if kind == FLOAT else "aten::ScalarImplicit"
    node = made.graph.create(word, [traced.value]).insert_after(made)
    return node.output.set_type(kind if kind in (INT, FLOAT) else NUMBER)


def traced_size(self: Tensor, dim: int, number: int) -> TracedInt:
    """Record the size of one dimension."""
    tracing = tracing_state()
    tracing.locate()
    graph = tracing.graph
    source = tracing.value_of(self)
    position = insert_constant(graph, dim, graph.current_range)
    size = graph.insert("aten::size", [source, position]).output.set_type(INT)
    return number_to_tensor(number, size)


def number_to_tensor(number: int, value: Value) -> TracedInt:
    """An int in the graph as a traced int."""
    node = value.node.graph.insert("prim::NumToTensor", [value])
    node.output.set_type(TensorType(int64, (), None, None, "cpu"))
    return TracedInt.of(number, node.output)


def traced_item(self: Tensor, number: object) -> object:
    """The element of a tensor as an operator's argument: a traced number, or the number if it can't be one."""
    value = tracing_state().value_of(self)
    if type(number) is int:
        return TracedInt.of(number, value)
    if type(number) is float:
        return TracedFloat.of(number, value)
    warn_constant("Python number")
    return number


_TENSOR_OPERANDS = {"add": True, "sub": True, "mul": False, "floor_divide": False, "div": False}
"""Operators whose other operand is a tensor in graphs, and whether an alpha follows it."""


def _record(word: str, operands: list[object], number: int | float) -> object:
    """Record an operator on traced numbers and plain ones."""
    tracing = tracing_state()
    tracing.locate()
    graph = tracing.graph
    inputs = []
    for operand in operands:
        if isinstance(operand, TracedInt | TracedFloat):
            inputs.append(operand.value)
        elif word in _TENSOR_OPERANDS:
            inputs.append(tracing.constant_tensor(_plain_tensor(operand)))
        else:
            inputs.append(insert_constant(graph, operand, graph.current_range))
    if _TENSOR_OPERANDS.get(word) or word == "rsub":
        inputs.append(insert_constant(graph, 1, graph.current_range))
    made = _plain_tensor(number)
    value = graph.insert(f"aten::{word}", inputs).output.set_type(complete_type(made))
    if type(number) is int:
        return TracedInt.of(number, value)
    tracing.set_value(made, value)
    return made


def _plain_tensor(number: object) -> Tensor:
    with suspended():
        return tensor(number)


def _arithmetic(name: str, word: str, reflected: str | None = None) -> None:
    plain = getattr(int, f"__{name}__")
    plain_reflected = getattr(int, f"__r{name}__")

    def forward(self: TracedInt, other: object) -> object:
        number = plain(self, other)
        if number is NotImplemented or tracing_state() is None or isinstance(other, bool):
            return number
        return _record(word, [self, other], number)

    def backward(self: TracedInt, other: object) -> object:
        number = plain_reflected(self, other)
        if number is NotImplemented or tracing_state() is None or isinstance(other, bool):
            return number
        if reflected is None:
            return _record(word, [self, other] if name in ("add", "mul") else [other, self], number)
        return _record(reflected, [self, other], number)

    setattr(TracedInt, f"__{name}__", forward)
    setattr(TracedInt, f"__r{name}__", backward)


def _comparison(name: str) -> None:
    plain = getattr(int, name)

    def compare(self: TracedInt, other: object) -> object:
        result = plain(self, other)
        if result is not NotImplemented and tracing_state() is not None and not is_library(sys._getframe(1)):
            warn_constant(_BOOLEAN)
        return result

    setattr(TracedInt, name, compare)


def _negative(self: TracedInt) -> int:
    number = int.__neg__(self)
    return number if tracing_state() is None else _record("neg", [self], number)


def _install() -> None:
    for name, word, reflected in (
        ("add", "add", None), ("sub", "sub", "rsub"), ("mul", "mul", None), ("floordiv", "floor_divide", None),
        ("mod", "remainder", None), ("truediv", "div", None), ("pow", "pow", None),
    ):  # fmt: skip
        _arithmetic(name, word, reflected)
    for name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        _comparison(name)
    TracedInt.__neg__ = _negative


_install()


def plain(value: object) -> object:
    """A value without what tracing put on it; lists and tuples are looked through."""
    if isinstance(value, TracedInt):
        return int.__add__(value, 0)
    if isinstance(value, TracedFloat):
        return float.__add__(value, 0.0)
    if isinstance(value, list | tuple) and any(isinstance(item, TracedInt | TracedFloat) for item in value):
        return [plain(item) for item in value] if type(value) is list else tuple(plain(item) for item in value)
    return value


