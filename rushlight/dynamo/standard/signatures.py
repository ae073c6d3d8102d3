"""`inspect.signature`, `typing.get_args` and the like: their results are constants if the argument is fully known."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import raised
from rushlight.dynamo.values.function import BoundMethodValue, FunctionValue
from rushlight.dynamo.values.objects import ObjectValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following


def _real_object(value: Value) -> Any:
    """Return the real function, method, class or object that the program asks about."""
    if isinstance(value, BoundMethodValue):
        receiver = value.owner.constant() if value.owner.is_constant() else getattr(value.owner, "real", None)
        return _real_object(value.function).__get__(object() if receiver is None else receiver)
    if isinstance(value, FunctionValue) and value.function is not None:
        return value.function
    if isinstance(value, ObjectValue) and value.real is not None and not value.written:
        return value.real
    if value.is_constant():
        return value.constant()
    raise GraphBreak(f"the signature of {value}")


def _handler_of(function: Callable) -> Callable:
    def handler(tx: Following, asked: Value, **options: Value) -> Value:
        given = {name: value.constant() for name, value in options.items()}
        try:
            return tx.wrap_constant(function(_real_object(asked), **given))
        except (TypeError, ValueError) as error:
            raise raised(error) from None

    return handler


for _function in (inspect.signature, inspect.getfullargspec, inspect.unwrap, inspect.getmodule, typing.get_type_hints,
                  typing.get_origin, typing.get_args):
    HANDLERS[_function] = _handler_of(_function)
