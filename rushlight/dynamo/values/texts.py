"""Texts of tracked values: `str`, `repr`, `format`, f-strings and `%`."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.process_facts import note_text
from rushlight.dynamo.stability import look_up
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue, FixedValue, fold, raised
from rushlight.dynamo.values.exceptions import ExceptionValue
from rushlight.dynamo.values.function import FunctionValue
from rushlight.dynamo.values.inheriting import InheritingValue, is_written_in_python
from rushlight.dynamo.values.objects import ObjectValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following


def formatted(tx: Following, value: Value, conversion: Callable | None, specification: Value) -> Value:
    """Return the text of `{value!conversion:specification}` in an f-string."""
    if conversion is not None:
        value = text_of(tx, value, conversion)
    elif isinstance(value, ObjectValue):
        if isinstance(look_up(value.kind, "__format__"), types.FunctionType):
            return value.method(tx, "__format__", [specification], {})
        if specification.constant():
            raise GraphBreak(f"{value} formatted by {specification}")
        value = text_of(tx, value, str)
    elif isinstance(value, ExceptionValue):
        value = ConstantValue(str(value.real()))
    return fold(format, value, specification)


def text_of(tx: Following, value: Value, how: Callable) -> Value:
    """Evaluate `str`, `repr` or `ascii` of a value."""
    if isinstance(value, ObjectValue):
        return _text_of_object(tx, value, how)
    if isinstance(value, ExceptionValue):
        return ConstantValue(how(value.real()))
    if isinstance(value, FunctionValue) and value.by_code:
        tx.guards.same_object(value.source, value.function)  # the text tells the function's address
        value = FixedValue(value.function)
    text = how(value.snapshot())
    note_text(text)
    return ConstantValue(text)


def _text_of_object(tx: Following, value: ObjectValue, how: Callable) -> Value:
    if isinstance(value, InheritingValue) and is_told_plainly(value, how):
        return text_of(tx, value.contents, how)
    for name in ("__str__", "__repr__") if how is str else ("__repr__",):
        found = look_up(value.kind, name)
        if isinstance(found, types.FunctionType):
            wrapped = getattr(found, "__wrapped__", None)
            if dataclasses.is_dataclass(value.kind) and isinstance(wrapped, types.FunctionType):
                tx.guard_member(value.kind, name, found)  # the wrapper only guards against recursion
                made = tx.wrap_constant(wrapped).call(tx, [value], {})
            else:
                made = value.method(tx, name, [], {})
            if made.python_type() is not str:
                raise raised(TypeError(f"{name} returned non-string (type {made.python_type().__name__})"))
            return made
        if found is not getattr(object, name):
            break
    else:
        if value.real is not None and value.source is not None:
            tx.guards.same_object(value.source, value.real)  # the text tells the object's address
            text = how(value.real)
            note_text(text)
            return ConstantValue(text)
    raise GraphBreak(f"the text of {value}")


def is_told_plainly(value: InheritingValue, how: Callable) -> bool:
    """Return whether an object's text is that of its built-in contents."""
    names = ("__repr__",) if how is not str else ("__str__", "__repr__")
    return value.base in (list, tuple, dict, int, float, complex, str, bytes) and not any(
        is_written_in_python(value.kind, name) for name in names
    )
