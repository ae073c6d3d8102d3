"""`torch.overrides`: the protocol by which types decide what the library's functions do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rushlight.core.absent import absent_class
from rushlight.core.overrides import call_override, is_overriding, overriding_arguments
from rushlight.core.tensor import Tensor


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the type of any argument decides."""
    return any(is_overriding(type(value)) for value in relevant_args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """What the deciding types make of a call of `public_api`; TypeError where all decline."""
    return call_override(public_api, overriding_arguments(tuple(relevant_args), {}), args, kwargs)


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor, or of a type that decides."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


TorchFunctionMode = absent_class("torch.overrides.TorchFunctionMode")
__all__ = ["TorchFunctionMode", "handle_torch_function", "has_torch_function", "is_tensor_like"]
