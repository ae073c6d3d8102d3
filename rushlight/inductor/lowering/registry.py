"""The lowering table: operator -> rule from boxes to boxes. Operators without a rule run as eager kernels."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten

LOWERINGS: dict[OpOverload, Callable] = {}
FALLBACKS: dict[OpOverload, str] = {}


def lowering(*names: str) -> Callable:
    """Register the decorated function `(graph, *args, **kwargs) -> TensorBox | tuple` for aten operators."""

    def register(function: Callable) -> Callable:
        for name in names:
            LOWERINGS[aten(name)] = function
        return function

    return register


def fallback(reason: str, *names: str) -> None:
    """Declare that operators run as eager kernels, and why."""
    for name in names:
        FALLBACKS[aten(name)] = reason
