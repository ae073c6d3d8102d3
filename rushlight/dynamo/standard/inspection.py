"""Builtins about one object: length, type, attributes, conversions; and calls that no capture can follow."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING

from rushlight.core.dtype import finfo, iinfo
from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import FrameNeeded, GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.process_facts import note
from rushlight.dynamo.rules import RULES
from rushlight.dynamo.stability import is_stable
from rushlight.dynamo.values.base import Raised, Value
from rushlight.dynamo.values.builtin import handles
from rushlight.dynamo.values.constant import NONE, ConstantValue, fold, raised
from rushlight.dynamo.values.construction import SuperValue
from rushlight.dynamo.values.later_numbers import is_later
from rushlight.dynamo.values.objects import ObjectValue
from rushlight.dynamo.values.open_floats import converted, is_open_float
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.dynamo.values.texts import formatted, text_of
from rushlight.legacy import TensorType

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following


@handles(len)
def _len(tx: Following, value: Value) -> Value:
    return value.length(tx)


@handles(isinstance)
def _isinstance(tx: Following, value: Value, kinds: Value) -> Value:
    wanted = kinds.constant()
    kind = value.python_type()
    for one in wanted if isinstance(wanted, tuple) else (wanted,):
        if isinstance(one, TensorType):  # `torch.FloatTensor` is no class: compare the dtype
            if issubclass(kind, Tensor) and value.attribute(tx, "dtype").constant() is one.dtype:
                return ConstantValue(True)
            continue
        check = type(one).__dict__.get("__instancecheck__") if isinstance(one, type) else None
        if isinstance(check, FunctionType) and not is_stable(type(one)):
            answer = tx.class_member(type(one), "__instancecheck__", check).call(tx, [tx.wrap_class(one), value], {})
            if answer.truth(tx):
                return ConstantValue(True)
            continue
        if isinstance(one, type) and check is None and issubclass(kind, one):
            return ConstantValue(True)
        if not isinstance(one, type) or check is not None:
            try:
                if issubclass(kind, one):
                    return ConstantValue(True)
            except TypeError as error:
                raise raised(error) from None
    return ConstantValue(False)


@handles(issubclass)
def _issubclass(tx: Following, kind: Value, kinds: Value) -> Value:
    return fold(issubclass, kind, kinds)


@handles(getattr)
def _getattr(tx: Following, value: Value, name: Value, *default: Value) -> Value:
    try:
        return value.attribute(tx, name.constant())
    except Raised as error:
        if default and issubclass(error.value.python_type(), AttributeError):
            return default[0]
        raise


@handles(hasattr)
def _hasattr(tx: Following, value: Value, name: Value) -> Value:
    try:
        value.attribute(tx, name.constant())
    except Raised as error:
        if issubclass(error.value.python_type(), AttributeError):
            return ConstantValue(False)
        raise
    return ConstantValue(True)


@handles(setattr)
def _setattr(tx: Following, value: Value, name: Value, new: Value) -> Value:
    value.set_attribute(tx, name.constant(), new)
    return NONE


@handles(delattr)
def _delattr(tx: Following, value: Value, name: Value) -> Value:
    value.delete_attribute(tx, name.constant())
    return NONE


@handles(bool)
def to_bool(tx: Following, value: Value = ConstantValue(False)) -> Value:  # noqa: B008
    return ConstantValue(value.truth(tx))


@handles(operator.not_)
def _not(tx: Following, value: Value) -> Value:
    return ConstantValue(not value.truth(tx))


def _has_later_number(value: Value) -> bool:
    return isinstance(value, TensorValue) and (RULES.capture_scalar_outputs or value.known() is not None)


def _conversion_handler(kind: type) -> Callable:
    def convert(tx: Following, *args: Value, **kwargs: Value) -> Value:
        if args and isinstance(args[0], ObjectValue):
            return args[0].method(tx, f"__{kind.__name__}__", [], {})
        if len(args) == 1 and not kwargs and (is_later(args[0]) or _has_later_number(args[0])):
            return args[0].method(tx, f"__{kind.__name__}__", [], {})
        if len(args) == 1 and not kwargs and is_open_float(args[0]):
            return converted(tx, kind, args[0])
        return fold(kind, *args, **kwargs)

    return convert


for _kind in (int, float):
    HANDLERS[_kind] = _conversion_handler(_kind)


@handles(str)
def _str(tx: Following, *args: Value, **kwargs: Value) -> Value:
    return text_of(tx, args[0], str) if len(args) == 1 and not kwargs else fold(str, *args, **kwargs)


@handles(repr)
def _repr(tx: Following, value: Value) -> Value:
    return text_of(tx, value, repr)


@handles(ascii)
def _ascii(tx: Following, value: Value) -> Value:
    return text_of(tx, value, ascii)


@handles(format)
def _format(tx: Following, value: Value, specification: Value = ConstantValue("")) -> Value:  # noqa: B008
    return formatted(tx, value, None, specification)


@handles(type)
def _type(tx: Following, value: Value) -> Value:
    return tx.wrap_class(value.python_type())


@handles(id)
def _id(tx: Following, value: Value) -> Value:
    held = tx.held_object(value)
    if held is None:
        return tx.identity(value)
    note()
    return ConstantValue(id(held))


@handles(super)
def _super(tx: Following, *args: Value) -> Value:
    if not args:
        return tx.implicit_super()
    return SuperValue(args[0].constant(), args[1])


@handles(object.__setattr__)
def _plain_setattr(tx: Following, owner: Value, name: Value, value: Value) -> Value:
    if not isinstance(owner, ObjectValue):
        raise GraphBreak(f"object.__setattr__ of {owner}")
    owner.set_plainly(tx, name.constant(), value)
    return NONE


@handles(os.fspath)
def _path(tx: Following, path: Value) -> Value:
    if isinstance(path, ObjectValue):
        return path.method(tx, "__fspath__", [], {})
    return fold(os.fspath, path)


@handles(vars)
def _vars(tx: Following, *args: Value) -> Value:
    return args[0].attribute(tx, "__dict__") if args else _refuse_frame(tx)


@handles(eval, exec, globals, locals, dir, breakpoint, sys._getframe, sys.exc_info, sys._current_frames)
def _refuse_frame(tx: Following, *args: Value, **kwargs: Value) -> Value:
    kind = FrameNeeded if tx.parent is None else GraphBreak
    raise kind("a call that looks at the frame", "move it out of the compiled function")


@handles(print, input, open, compile)
def _break_for_effect(tx: Following, *args: Value, **kwargs: Value) -> Value:
    raise GraphBreak("a call with an effect on the world", "move it out of the compiled function")


@handles(callable)
def _callable(tx: Following, value: Value) -> Value:
    return ConstantValue("__call__" in dir(value.python_type()))


HANDLERS[operator.truth] = to_bool
HANDLERS[finfo] = lambda tx, *args: ConstantValue(finfo(*[value.constant() for value in args]))
HANDLERS[iinfo] = lambda tx, *args: ConstantValue(iinfo(*[value.constant() for value in args]))
HANDLERS[object] = lambda tx: ObjectValue(object)
