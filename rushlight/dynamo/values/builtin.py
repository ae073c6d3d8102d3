"""Builtins, and functions and classes of the standard library. `standard` has handlers for those that captures follow."""

from __future__ import annotations

import abc
import builtins
import collections
import math
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.sources import Source
from rushlight.dynamo.stability import look_up
from rushlight.dynamo.values import arrays
from rushlight.dynamo.values.arrays import ArrayValue
from rushlight.dynamo.values.base import BINARY, COMPARISONS, Value
from rushlight.dynamo.values.classes import ClassValue
from rushlight.dynamo.values.constant import FixedValue, fold
from rushlight.dynamo.values.construction import call_plainly
from rushlight.dynamo.values.later_numbers import LaterNumberValue, later
from rushlight.dynamo.values.objects import ObjectValue
from rushlight.dynamo.values.open_floats import function_of, is_open_float
from rushlight.dynamo.values.symbolic import ROUNDINGS
from rushlight.dynamo.values.tensor import TensorValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

# Functions without side effects whose results depend only on constant arguments.
PURE = frozenset({
    abs, bin, chr, divmod, format, hex, oct, ord, pow, repr, round, ascii, callable, hash, complex, bytes,
    *(value for value in vars(math).values() if callable(value)), operator.index, int.from_bytes, str.maketrans,
    bytes.fromhex, float.fromhex, operator.length_hint, operator.abs,
    *BINARY.values(), *COMPARISONS.values(), operator.neg, operator.pos, operator.invert, operator.not_,
})  # fmt: skip


# Builtins that call a special method on the user's objects.
SPECIAL = {
    abs: "__abs__", round: "__round__", hash: "__hash__", operator.index: "__index__", complex: "__complex__",
    bytes: "__bytes__", math.floor: "__floor__", math.ceil: "__ceil__", math.trunc: "__trunc__",
}  # fmt: skip


_OBJECTS = (ObjectValue, ArrayValue)
_OPERATORS = {function: symbol for symbol, function in (*BINARY.items(), *COMPARISONS.items())}


class BuiltinValue(FixedValue):
    """A builtin, or a function or class of the standard library."""

    def attribute(self, tx: Following, name: str) -> Value:
        return tx.wrap_constant_attribute(self.value, name)

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        handler = HANDLERS.get(self.value)
        if handler is not None:
            try:
                return handler(tx, *args, **kwargs)
            except TypeError as error:
                if error.__traceback__.tb_next is None:  # the handler was not even entered: it does not take these arguments
                    raise GraphBreak(f"{self}() with these arguments") from None
                raise
        special = SPECIAL.get(self.value)
        if args and special and (isinstance(args[0], _OBJECTS) or special in ROUNDINGS and _rounds_itself(args[0])):
            return args[0].method(tx, special, args[1:], kwargs)
        if any(isinstance(value, ArrayValue) for value in args) and self.value in _OPERATORS:
            return arrays.binary(tx, _OPERATORS[self.value], *args)
        if self.value in PURE and any(isinstance(value, TensorValue) for value in args):
            return tx.call_in_graph("call_function", self.value, args, kwargs)
        if self.value in PURE and not kwargs:
            number = later(tx, self.value, args)
            if number is not None:
                return number
        opened = function_of(tx, self.value, args)
        if opened is not None:
            return opened
        if self.value in PURE:
            return fold(self.value, *args, **kwargs)
        raise GraphBreak(f"a call of {self}, which the capture does not know", "call it outside of the compiled part")

    def node(self, tx: Following) -> Any:
        return self.value

    def __str__(self) -> str:
        return f"{getattr(self.value, '__module__', '')}.{getattr(self.value, '__qualname__', self.value)}".lstrip(".")


def _rounds_itself(value: Value) -> bool:
    return is_open_float(value) or isinstance(value, LaterNumberValue)


def handles(*functions: Any) -> Callable:
    """Register the handler of builtin functions; it takes the translator and the tracked arguments."""

    def register(handler: Callable) -> Callable:
        for function in functions:
            HANDLERS[function] = handler
        return handler

    return register


_CALLABLES = frozenset({
    type, abc.ABCMeta, types.BuiltinFunctionType, types.FunctionType, types.WrapperDescriptorType, types.MethodDescriptorType,
})  # fmt: skip
BUILTIN_NAMES = frozenset(value for value in vars(builtins).values() if callable(value) and type(value).__hash__)


def is_builtin(value: object) -> bool:
    """Return whether a callable is a builtin that this module handles."""
    if type(value) not in _CALLABLES:  # `in` would run a program's own __eq__
        return False
    return value in HANDLERS or value in PURE or value in BUILTIN_NAMES


class MethodOfClassValue(FixedValue):
    """A method accessed on its built-in class: `list.append`, `float.__add__`."""

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if not args or not issubclass(args[0].python_type(), self.value.__objclass__):
            raise GraphBreak(f"a call of {self} with these arguments")
        return call_plainly(tx, args[0], self.value.__name__, args[1:], kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        return tx.wrap_constant_attribute(self.value, name)

    def __str__(self) -> str:
        return self.value.__qualname__


def make_class_value(kind: type, source: Source | None) -> Value:
    """Track a class; calls of builtin classes have handlers."""
    if issubclass(kind, Tensor) or not is_builtin(kind):
        return ClassValue(kind, source)
    return BuiltinClassValue(kind, source)


class BuiltinClassValue(ClassValue):
    """A builtin class, whose calls have handlers."""

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if issubclass(self.kind, BaseException):
            return tx.construct(self, args, kwargs)
        return BuiltinValue(self.kind).call(tx, args, kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        if name == "fromkeys" and self.kind in (dict, collections.OrderedDict, collections.defaultdict):
            return BuiltinValue(self.kind.fromkeys)
        found = look_up(self.kind, name)
        if isinstance(found, types.MethodDescriptorType | types.WrapperDescriptorType) and found not in HANDLERS:
            return MethodOfClassValue(found)
        return super().attribute(tx, name)
