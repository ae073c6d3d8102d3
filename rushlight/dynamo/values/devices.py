"""Device arguments of calls: a capture has tensors on the CPU and on GPUs only."""

from __future__ import annotations

from typing import Any

from rushlight.core.device import device, gpus
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue


def names_other_device(target: Any, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Return whether a call of the library asks for a tensor on a device that is neither the CPU nor a GPU."""
    where = kwargs.get("device")
    if where is not None and _is_other(where, (device, str)):
        return True
    return any(_is_other(value, (device, str) if target == "to" else (device,)) for value in args)


def _is_other(value: Value, kinds: tuple[type, ...]) -> bool:
    # Reading any other constant would specialize an open size.
    if not isinstance(value, ConstantValue) or value.python_type() not in kinds:
        return False
    name = str(value.constant()).partition(":")[0]
    return name != "cpu" and not (name == "cuda" and gpus.count())
