"""`torch.onnx.symbolic_helper`: what programs say of their functions that translate operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["parse_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Callable], Callable]:
    """Return a decorator that notes the kinds of a translating function's arguments: "v" a value, "i" an int, "f" a float, ...

    An exporter reads them from `_arg_descriptors`.
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def symbolic(graph: Any, *args: Any, **kwargs: Any) -> Any:
            return function(graph, *args, **kwargs)

        symbolic._arg_descriptors = arg_descriptors
        return symbolic

    return decorate
