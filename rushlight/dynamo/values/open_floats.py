"""Floats that a capture leaves open: those from outside that change from call to call, and sums and products of them.

Arithmetic on them becomes Python text, which generated code evaluates before it runs the graph. Where one meets a tensor, its
value is an input of the graph: a tensor without dimensions, of the other operand's dtype. Whatever else looks at one takes
the number of the example, and the capture then holds for this number only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rushlight.core.dtype import dtype, float32, float64
from rushlight.dynamo.sources import NumberTensor, Source
from rushlight.dynamo.values.base import MAKERS, Value
from rushlight.dynamo.values.constant import ConstantValue
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.ops.construct import tensor

if TYPE_CHECKING:
    from rushlight.dynamo.program import ProgramWriter
    from rushlight.dynamo.translator import Translator

# What the library's arithmetic on a tensor and a number is called: operators, functions and methods.
_ARITHMETIC = frozenset("""add sub mul truediv iadd isub imul itruediv div true_divide subtract multiply divide
    add_ sub_ mul_ div_""".split())
_DTYPES = (float32, float64)  # of tensors with which an operand without dimensions counts as a number does


class OpenFloat:
    """A float as a Python expression. `hint` is its value in the example; `fix` is called where something needs that."""

    __slots__ = ("hint", "text", "_fix")

    def __init__(self, hint: float, text: str, fix: Callable[[], object]) -> None:
        self.hint = hint
        self.text = text
        self._fix = fix

    def __float__(self) -> float:
        """The value of the example, which is guarded from now on."""
        self._fix()
        return self.hint

    def _combine(self, function: Callable, form: str, operands: Iterable) -> Any:
        operands = list(operands)
        if not all(type(each) is OpenFloat or _is_written(each) for each in operands):
            return function(*[float(each) if type(each) is OpenFloat else each for each in operands])
        values = [each.hint if type(each) is OpenFloat else each for each in operands]
        texts = [each.text if type(each) is OpenFloat else repr(each) for each in operands]
        fixes = [each._fix for each in operands if type(each) is OpenFloat]
        return OpenFloat(function(*values), f"({form.format(*texts)})", lambda: [fix() for fix in fixes])

    def __truediv__(self, other: Any) -> Any:
        if type(other) is OpenFloat or not other:  # which may be, or is, a division by zero
            return float(self) / (float(other) if type(other) is OpenFloat else other)
        return self._combine(operator.truediv, "{} / {}", (self, other))


def _is_written(number: Any) -> bool:
    return type(number) in (int, float) and math.isfinite(number)


def _define_arithmetic() -> None:
    def define(name: str, function: Callable, form: str) -> None:
        setattr(OpenFloat, f"__{name}__", lambda self, other: self._combine(function, form, (self, other)))
        setattr(OpenFloat, f"__r{name}__", lambda self, other: self._combine(function, form, (other, self)))

    for name, function, form in (
        ("add", operator.add, "{} + {}"), ("sub", operator.sub, "{} - {}"), ("mul", operator.mul, "{} * {}"),
    ):  # fmt: skip
        define(name, function, form)
    for name, function, form in (
        ("neg", operator.neg, "-{}"), ("pos", operator.pos, "+{}"), ("abs", abs, "abs({})"),
    ):  # fmt: skip
        setattr(OpenFloat, f"__{name}__", lambda self, function=function, form=form: self._combine(function, form, (self,)))


def _define_fixed() -> None:
    """What needs the number itself."""

    def define(name: str) -> None:
        method = getattr(float, f"__{name}__")

        def fixed(self, *others):  # a complex or open integer on the other side knows what to do with a float
            return method(float(self), *[float(each) if type(each) is OpenFloat else each for each in others])

        setattr(OpenFloat, f"__{name}__", fixed)

    for name in ("floordiv mod pow divmod rtruediv rfloordiv rmod rpow rdivmod lt le eq ne gt ge bool").split():
        define(name)


_define_arithmetic()
_define_fixed()


class OpenFloatValue(ConstantValue):
    """An open float. As a constant it is fixed to its number."""

    def __init__(self, number: OpenFloat, source: Source | None = None) -> None:
        self.number = number
        self.source = source

    @property
    def value(self) -> float:
        """The number of the example, which is guarded from now on."""
        return float(self.number)

    def operand(self) -> Any:
        return self.number

    def python_type(self) -> type:
        return float

    def same_as(self, other: Value) -> bool:
        return self is other or super().same_as(other)

    def write(self, writer: ProgramWriter) -> str:
        return writer.keep(self.number.text)  # before anything that it is computed from is written to

    def __str__(self) -> str:
        return self.number.text


MAKERS[OpenFloat] = OpenFloatValue


def as_operands(tx: Translator, target: Any, args: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """The arguments of a call of the library: an open float that is added to a tensor, or multiplied, as a tensor, too."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if len(args) != 2 or kwargs or name not in _ARITHMETIC:
        return args
    kinds = [value.fake.dtype for value in args if isinstance(value, TensorValue)]
    if len(kinds) != 1 or kinds[0] not in _DTYPES:
        return args
    return [_as_tensor(tx, value.number, kinds[0]) if type(value) is OpenFloatValue else value for value in args]


def _as_tensor(tx: Translator, number: OpenFloat, kind: dtype) -> Value:
    make = tx.guards.name(tensor, "tensor")
    text = f"{make}({number.text}, dtype={tx.guards.name(kind, kind.name)})"
    return tx.session.number_tensor(number.hint, kind, NumberTensor(number.text, text))
