"""Functions under `functools.lru_cache`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.process_facts import note
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import FixedValue, raised
from rushlight.dynamo.values.modules import ModuleValue
from rushlight.dynamo.values.objects import ObjectValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following


class CachedFunctionValue(FixedValue):
    """A function with cached results.

    A call with known arguments runs at capture, because later runs would hit the cache anyway. Any other call follows the
    wrapped function.
    """

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        try:
            values, named = list(map(_real_argument, args)), {name: _real_argument(value) for name, value in kwargs.items()}
        except GraphBreak:
            return self._follow(tx, args, kwargs)
        try:
            result = self.value(*values, **named)
        except Exception as error:
            raise raised(error) from None
        if isinstance(result, Tensor):
            return self._follow(tx, args, kwargs)
        note()
        return tx.wrap_constant(result)

    def _follow(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.wrap_constant(self.value.__wrapped__).call(tx, args, kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        return tx.wrap_constant_attribute(self.value, name)

    def __str__(self) -> str:
        return f"function {self.value.__name__}, whose results are cached"


def _real_argument(value: Value) -> Any:
    """Return the real argument. GraphBreak if it is unknown or has state that the result may depend on."""
    if isinstance(value, ObjectValue) and not isinstance(value, ModuleValue) and value.is_one_key():
        return value.real
    return value.constant()
