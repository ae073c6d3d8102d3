"""Sizes during a trace: ints with a value in the graph, so that arithmetic on them is recorded.

In: `x.size(0)`, or an element that an operator takes as a number. Out: a number that behaves like any other, is recorded as a
0-dim tensor, and is converted back (`aten::Int`) where an operator takes it. Arithmetic with a float returns a tensor.
Comparisons return plain bools, with a warning.
"""

from __future__ import annotations

import operator
import sys

import numpy as np

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


class TracedInt:
    """An int of a trace; `value` is its tensor in the graph.

    `isinstance(size, int)` is True, but it is no subclass of int: Python's floats would compute with a subclass directly (`0.5
    * size`), without recording.
    """

    __slots__ = ("number", "value")
    __class__ = property(lambda self: int)  # type: ignore[assignment]

    def __init__(self, number: int, value: Value):
        self.number = number
        self.value = value

    def as_tensor(self) -> Tensor:
        """Return the 0-dim tensor of this number in the graph."""
        made = _plain_tensor(self.number)
        tracing_state().set_value(made, self.value)
        return made

    def __int__(self) -> int:
        return _leave_trace(self, "Python integer")

    def __index__(self) -> int:
        return self.number

    def __float__(self) -> float:
        return float(_leave_trace(self, "Python float"))

    def __complex__(self) -> complex:
        return complex(_leave_trace(self, "Python complex number"))

    def __bool__(self) -> bool:
        return bool(_leave_trace(self, _BOOLEAN))

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return repr(self.number)

    def __format__(self, spec: str) -> str:
        return format(_leave_trace(self, "Python number"), spec)

    def __getattr__(self, name: str) -> object:
        return getattr(self.number, name)

    def __reduce_ex__(self, protocol: int) -> tuple:
        return (int, (self.number,))


def _leave_trace(traced: TracedInt, what: str) -> int:
    """Return the plain number, with a warning if the user's code requests it."""
    if tracing_state() is not None and not is_library(sys._getframe(2)):
        warn_constant(what)
    return traced.number


class TracedFloat(float):
    """A float of a trace, as `TracedInt`."""

    value: Value

    @classmethod
    def of(cls, number: float, value: Value) -> TracedFloat:
        """Return a number with a value in the graph."""
        made = cls(number)
        made.value = value
        return made


def as_number(traced: TracedInt | TracedFloat, kind: Type) -> Value:
    """Return the graph value of the number type that an operator takes, inserted after the tensor."""
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
    """Return an int in the graph as a traced int."""
    node = value.node.graph.insert("prim::NumToTensor", [value])
    node.output.set_type(TensorType(int64, (), None, None, "cpu"))
    return TracedInt(number, node.output)


def traced_item(self: Tensor, number: object) -> object:
    """Return a tensor's element as an operator's argument: a traced number if possible, else the plain number."""
    value = tracing_state().value_of(self)
    if type(number) is int:
        return TracedInt(number, value)
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
        return TracedInt(number, value)
    tracing.set_value(made, value)
    return made


def _plain_tensor(number: object) -> Tensor:
    with suspended():
        return tensor(number)


def _operand(value: object) -> object:
    """Return the other operand as a Python number; None for anything else."""
    if type(value) in (TracedInt, int, float, complex):
        return value
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, int | float | complex) else None


def _record_arithmetic(name: str, word: str, reflected: str | None = None) -> None:
    """Record one of Python's binary operators. With integers the result is a traced int; with a float or complex operand, a
    tensor."""
    function = getattr(operator, f"{name}_" if name in ("and", "or") else name)

    def forward(self: TracedInt, other: object) -> object:
        if isinstance(other, Tensor) and tracing_state() is not None:
            return function(self.as_tensor(), other)
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        if tracing_state() is None:
            return function(self.number, plain(operand))
        if not isinstance(operand, int):
            return function(self.as_tensor(), operand)
        return _record(word, [self, operand], function(self.number, plain(operand)))

    def backward(self: TracedInt, other: object) -> object:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        if tracing_state() is None:
            return function(operand, self.number)
        if not isinstance(operand, int):
            return function(operand, self.as_tensor())
        number = function(operand, self.number)
        if reflected is None:
            return _record(word, [self, operand] if name in ("add", "mul") else [operand, self], number)
        return _record(reflected, [self, operand], number)

    setattr(TracedInt, f"__{name}__", forward)
    setattr(TracedInt, f"__r{name}__", backward)


def _record_comparison(name: str) -> None:
    compare_plain = getattr(operator, name)

    def compare(self: TracedInt, other: object) -> object:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        if tracing_state() is not None and not is_library(sys._getframe(1)):
            warn_constant(_BOOLEAN)
        return compare_plain(self.number, plain(operand))

    setattr(TracedInt, f"__{name}__", compare)


def _record_unary(name: str, word: str) -> None:
    function = getattr(operator, name)

    def method(self: TracedInt) -> object:
        number = function(self.number)
        return number if tracing_state() is None else _record(word, [self], number)

    setattr(TracedInt, f"__{name}__", method)


def _round_to_itself(self: TracedInt, digits: int | None = None) -> int:
    """Round a traced int to no digits: it stays unchanged."""
    return self if digits is None else round(self.number, digits)


def _record_divmod(self: TracedInt, other: object) -> object:
    return self // other, self % other


def _record_reflected_divmod(self: TracedInt, other: object) -> object:
    return other // self, other % self


def _install() -> None:
    for name, word, reflected in (
        ("add", "add", None), ("sub", "sub", "rsub"), ("mul", "mul", None), ("floordiv", "floor_divide", None),
        ("mod", "remainder", None), ("truediv", "div", None), ("pow", "pow", None), ("and", "__and__", "__and__"),
        ("or", "__or__", "__or__"), ("xor", "__xor__", "__xor__"), ("lshift", "__lshift__", None),
        ("rshift", "__rshift__", None),
    ):  # fmt: skip
        _record_arithmetic(name, word, reflected)
    for name, word in (("neg", "neg"), ("abs", "abs"), ("invert", "bitwise_not")):
        _record_unary(name, word)
    for name in ("__pos__", "__round__", "__floor__", "__ceil__", "__trunc__"):
        setattr(TracedInt, name, _round_to_itself)
    TracedInt.__divmod__, TracedInt.__rdivmod__ = _record_divmod, _record_reflected_divmod
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        _record_comparison(name)


_install()


def plain(value: object) -> object:
    """Return a value with traced numbers replaced by plain ones, also in lists and tuples."""
    if type(value) is TracedInt:
        return value.number
    if isinstance(value, TracedFloat):
        return float.__add__(value, 0.0)
    if isinstance(value, list | tuple) and any(type(item) in (TracedInt, TracedFloat) for item in value):
        return [plain(item) for item in value] if type(value) is list else tuple(plain(item) for item in value)
    return value


