"""Calls of functions that a program marks with `assume_constant_result`: they run during capture.

In: a marked function and tracked arguments whose values are all known. Out: the result, as a constant of the captured code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.process_facts import note
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import raised
from rushlight.dynamo.values.function import FunctionValue
from rushlight.dynamo.values.objects import ObjectValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

MARK = "_dynamo_marked_constant"  # PyTorch's attribute, which packages also set directly


def is_marked(function: FunctionValue) -> bool:
    """Return whether a function is marked as returning a constant."""
    return getattr(function.function, MARK, False)


def call_at_capture(tx: Following, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Call a marked function and track its result. GraphBreak if an argument's value is unknown; `Raised` if the function
    raises."""
    values = [_real_argument(value) for value in args]
    named = {name: _real_argument(value) for name, value in kwargs.items()}
    note()  # the capture cannot be reused by other processes, where the result may differ
    try:
        result = function.function(*values, **named)
    except Exception as error:
        raise raised(error) from None
    return tx.wrap_constant(result)


def _real_argument(value: Value) -> Any:
    """Return the real object of an argument."""
    if isinstance(value, ObjectValue) and value.real is not None and not value.written:
        return value.real
    try:
        return value.snapshot()
    except GraphBreak:
        raise GraphBreak(f"{value} as an argument of a function under assume_constant_result") from None
