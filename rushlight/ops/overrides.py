"""`__torch_function__`: types that decide for themselves what the library's functions do with them.

In: a call of a public function. Out: what the `__torch_function__` of an argument's type returns, where there is one: traced
proxies record the call, subclasses of Tensor may wrap it. Plain tensors, parameters and Python values never pass through here.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.core.tensor import Tensor

_state = threading.local()
# Types without an implementation of their own; classes are added as they are met.
_plain: set[type] = {Tensor, int, float, bool, str, type(None), complex}


class DisableTorchFunctionSubclass:
    """Context manager in which subclasses of Tensor are treated as plain tensors."""

    def __enter__(self) -> None:
        self._before = getattr(_state, "disabled", False)
        _state.disabled = True

    def __exit__(self, *error: object) -> None:
        _state.disabled = self._before


def is_overriding(kind: type) -> bool:
    """Whether values of a type decide themselves: it has a `__torch_function__` other than the one that does nothing."""
    if kind in _plain:
        return False
    method = getattr(kind, "__torch_function__", None)
    if method is None or method is plain_torch_function:
        _plain.add(kind)
        return False
    return not (getattr(_state, "disabled", False) and issubclass(kind, Tensor))


plain_torch_function = None


def overriding_arguments(args: tuple, kwargs: dict) -> list[Any]:
    """The arguments whose types decide, one per type, subclasses before their bases, otherwise in order."""
    found: list[Any] = []
    for value in _flat((*args, *kwargs.values())):
        kind = type(value)
        if is_overriding(kind) and all(type(other) is not kind for other in found):
            position = next((index for index, other in enumerate(found) if issubclass(kind, type(other))), len(found))
            found.insert(position, value)
    return found


def _flat(values: tuple) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value


def call_override(function: Callable, deciding: list[Any], args: tuple, kwargs: dict) -> Any:
    """The first answer of the deciding arguments' types that is not NotImplemented; TypeError where all decline."""
    kinds = tuple(type(value) for value in deciding)
    for value in deciding:
        result = value.__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    names = ", ".join(kind.__qualname__ for kind in kinds)
    raise TypeError(f"no implementation found for '{function.__qualname__}' on types that implement __torch_function__: {names}")


def overridable(function: Callable) -> Callable:
    """`function`, which first asks the types of its arguments."""

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if type(value) not in _plain:
                break
        else:
            if not kwargs:
                return function(*args)
        deciding = overriding_arguments(args, kwargs)
        return call_override(public, deciding, args, kwargs) if deciding else function(*args, **kwargs)

    return public
