"""The table of translations: which function makes ONNX nodes of which operator."""

from __future__ import annotations

from collections.abc import Callable

TRANSLATIONS: dict[str, Callable] = {}
"""By an operator's name without its overload: `function(builder, *args, **kwargs)`, which returns a value's name, or a list."""


def translation(*names: str) -> Callable[[Callable], Callable]:
    """Register the decorated function as the translation of aten operators."""

    def register(function: Callable) -> Callable:
        TRANSLATIONS.update(dict.fromkeys(names, function))
        return function

    return register
