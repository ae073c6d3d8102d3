"""`functools`, `operator` and `math`: functions that call, get or combine."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.values.base import BINARY, COMPARISONS, IN_PLACE, Value
from rushlight.dynamo.values.builtin import handles
from rushlight.dynamo.values.constant import ConstantValue, fold, raised
from rushlight.dynamo.values.function import PartialValue
from rushlight.dynamo.values.operators import binary, by_methods, compare
from rushlight.dynamo.values.polyfills import POLYFILLS
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.tensor import TensorValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


@handles(functools.partial)
def _partial(tx: Following, function: Value, /, *args: Value, **kwargs: Value) -> Value:
    if isinstance(function, PartialValue):
        return PartialValue(functools.partial, function.function, [*function.args, *args], {**function.kwargs, **kwargs})
    return PartialValue(functools.partial, function, list(args), kwargs)


@handles(functools.reduce)
def _reduce(tx: Following, function: Value, values: Value, *start: Value) -> Value:
    source = iter([*start, *values.items_of(tx)])
    total = next(source, None)
    if total is None:
        raise raised(TypeError("reduce() of empty iterable with no initial value"))
    for value in source:
        total = function.call(tx, [total, value], {})
    return total


def _trace_instead(function: Callable) -> Callable:
    return lambda tx, *args, **kwargs: tx.wrap_constant(function).call(tx, list(args), kwargs)


for _original, _polyfill in POLYFILLS.items():
    HANDLERS[_original] = _trace_instead(_polyfill)


class GetterValue(Value):
    """`operator.itemgetter` or `operator.attrgetter`."""

    def __init__(self, kind: type, keys: list[Value]) -> None:
        self.kind = kind
        self.keys = keys

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Following) -> bool:
        return True

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs:
            raise GraphBreak(f"{self.kind.__name__} with these arguments")
        found = [self._get(tx, args[0], key) for key in self.keys]
        return found[0] if len(found) == 1 else SequenceValue(found, tuple)

    def _get(self, tx: Following, value: Value, key: Value) -> Value:
        if self.kind is operator.itemgetter:
            return tx.item(value, key)
        for name in key.constant().split("."):
            value = value.attribute(tx, name)
        return value

    def write(self, writer: Writer) -> str:
        return f"{writer.name_of(self.kind, self.kind.__name__)}({', '.join(writer.expression(key) for key in self.keys)})"


class MethodCallerValue(Value):
    """`operator.methodcaller`."""

    def __init__(self, name: str, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.name = name
        self.args = args
        self.kwargs = kwargs

    def python_type(self) -> type:
        return operator.methodcaller

    def truth(self, tx: Following) -> bool:
        return True

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs:
            raise GraphBreak("methodcaller with these arguments")
        return args[0].method(tx, self.name, self.args, self.kwargs)

    def write(self, writer: Writer) -> str:
        parts = [repr(self.name), *(writer.expression(value) for value in self.args)]
        parts += [f"{name}={writer.expression(value)}" for name, value in self.kwargs.items()]
        return f"{writer.name_of(operator.methodcaller, 'methodcaller')}({', '.join(parts)})"


HANDLERS[operator.methodcaller] = lambda tx, name, *args, **kwargs: MethodCallerValue(name.constant(), list(args), kwargs)
HANDLERS[operator.itemgetter] = lambda tx, key, *more: GetterValue(operator.itemgetter, [key, *more])
HANDLERS[operator.attrgetter] = lambda tx, name, *more: GetterValue(operator.attrgetter, [name, *more])


@handles(divmod)
def _divmod(tx: Following, left: Value, right: Value) -> Value:
    if left.is_constant() and right.is_constant():
        return fold(divmod, left, right)
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        return SequenceValue([binary(tx, "//", left, right), binary(tx, "%", left, right)], tuple)
    return by_methods(tx, divmod, False, left, right)


def _operator_handler(symbol: str, function: Callable) -> Callable:
    return lambda tx, left, right: function(tx, symbol, left, right)


for _symbol, _function in {**BINARY, **IN_PLACE}.items():
    HANDLERS[_function] = _operator_handler(_symbol, binary)
for _symbol, _function in COMPARISONS.items():
    HANDLERS[_function] = _operator_handler(_symbol, compare)
for _function in (re.compile, re.match, re.fullmatch, re.search, re.split, re.findall, re.sub, re.escape):
    HANDLERS[_function] = functools.partial(lambda function, tx, *args, **kwargs: fold(function, *args, **kwargs), _function)
HANDLERS[operator.getitem] = lambda tx, value, key: tx.item(value, key)
HANDLERS[operator.is_] = lambda tx, one, other: ConstantValue(one.same_as(other))
HANDLERS[operator.is_not] = lambda tx, one, other: ConstantValue(not one.same_as(other))
HANDLERS[operator.contains] = lambda tx, values, value: tx.contains(values, value)
HANDLERS[math.prod] = lambda tx, values: functools.reduce(
    lambda one, other: binary(tx, "*", one, other), values.items_of(tx), ConstantValue(1)
)
