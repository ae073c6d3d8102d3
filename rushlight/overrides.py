"""`torch.overrides`: the protocol by which types and modes decide what the library's functions do.

`TorchFunctionMode` is a mode: under `with mode:`, every call of a public function, method or property goes to its
`__torch_function__`, which usually calls `func(*args, **kwargs)` itself; that call goes to the next outer mode.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from rushlight.core import asking_methods, function_modes
from rushlight.core.overrides import asks_modes, call_override, is_overriding, overriding_arguments
from rushlight.core.tensor import Tensor
from rushlight.overridable import (
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    is_tensor_method_or_property,
    resolve_name,
)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether a mode is active, or the type of any argument decides."""
    return asks_modes() or any(is_overriding(type(value)) for value in relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """Return `has_torch_function` of one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Return `has_torch_function` of arguments one by one."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Let the active mode or the overriding types handle a call of `public_api`; TypeError if all decline."""
    return call_override(public_api, overriding_arguments(tuple(relevant_args), {}), args, kwargs)


def wrap_torch_function(dispatcher: Callable) -> Callable[[Callable], Callable]:
    """Return a decorator of functions that modes and types may decide; `dispatcher`, called like the function, names the
    arguments."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def asking(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(asking, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return asking

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Return whether a value is a tensor, or of a type that decides."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


class TorchFunctionMode:
    """Base of modes. Subclasses define `__torch_function__(self, func, types, args=(), kwargs=None)`.

    While the handler runs, the mode itself is not active: `func(*args, **kwargs)` goes on to the next outer mode, or runs.
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _push_mode(self)
        return self

    def __exit__(self, *error: object) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """Return a mode of this class; deprecated, as in torch."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


function_modes.when_entered(asking_methods.install, asking_methods.remove)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: TorchFunctionMode) -> None:
    function_modes.push(mode)


def _pop_mode() -> TorchFunctionMode:
    return function_modes.pop()


def _len_torch_function_stack() -> int:
    return len(function_modes.stack())


def _get_current_function_mode() -> TorchFunctionMode | None:
    return function_modes.stack()[-1] if function_modes.stack() else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return list(function_modes.stack())


@contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """Return a context without the innermost mode, which it gives."""
    if not function_modes.stack():
        raise AssertionError("no function mode is active")
    with function_modes.innermost_popped() as mode:
        yield mode


def enable_reentrant_dispatch() -> AbstractContextManager:
    """Return a context in a handler of `__torch_dispatch__` in which operators go through autograd and modes again."""
    return nullcontext()


__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_ignored_functions",
    "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function", "is_tensor_like",
    "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip
