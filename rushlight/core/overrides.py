"""`__torch_function__`: types that override what the library's functions do with them.

In: a call of a public function. Out: what the `__torch_function__` of an argument's type returns, where there is one: traced
proxies record the call, subclasses of Tensor wrap its results. Plain tensors, parameters and Python values never pass here.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rushlight._C import TensorBase
from rushlight.core import function_modes
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.wrapper_subclasses import dispatches, with_history_as


class _ThreadState(threading.local):
    disabled = False


_state = _ThreadState()


class DisableTorchFunctionSubclass:
    """Context manager in which subclasses of Tensor are treated as plain tensors."""

    def __enter__(self) -> None:
        self._before = _state.disabled
        _state.disabled = True

    def __exit__(self, *error: object) -> None:
        _state.disabled = self._before


def is_subclass_disabled() -> bool:
    """Return whether subclasses of Tensor are treated as plain tensors in this thread now."""
    return _state.disabled


def disabled_torch_function(function: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
    """Call `function` without overrides: the `__torch_function__` of classes whose results are plain tensors."""
    _refuse_foreign(function)
    with DisableTorchFunctionSubclass():
        return function(*args, **(kwargs or {}))


def _refuse_foreign(function: Callable) -> None:
    """Raise TypeError where the caller is PyTorch: one of its functions was given a tensor of this library."""
    owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, TensorBase):
        return  # the class belongs to this library, which may be imported under the name torch
    module = getattr(function, "__module__", None) or getattr(owner, "__module__", None) or type(owner).__module__
    if isinstance(module, str) and module.partition(".")[0] == "torch":
        raise TypeError(f"{getattr(function, '__name__', 'a function')}() {_TWO_LIBRARIES}")


def refuse_foreign_tensor(value: Any, name: str) -> None:
    """Raise TypeError where `value`, an operand of `name`, is a tensor of PyTorch."""
    if _is_foreign(type(value)):
        raise TypeError(f"{name} {_TWO_LIBRARIES}")


def _is_foreign(kind: type) -> bool:
    """Return whether a type is one of PyTorch's tensors. Under the alias, this library's types carry torch's names, too."""
    return kind.__module__.partition(".")[0] == "torch" and hasattr(kind, "data_ptr") and not issubclass(kind, TensorBase)


_TWO_LIBRARIES = (
    "was given tensors of two packages: rushlight.Tensor and torch.Tensor, PyTorch's. Convert one of them, for example with "
    "rushlight.from_dlpack or torch.from_dlpack"
)


def _call_and_wrap(cls: type, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
    """Call `func` on plain tensors, and make its results tensors of this class."""
    _refuse_foreign(func)
    if not all(issubclass(cls, kind) or not issubclass(kind, Tensor) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        return _as_subclass(cls, func(*args, **(kwargs or {})))


def _as_subclass(cls: type, value: Any) -> Any:
    if type(value) is Tensor and cls is not Tensor:
        if dispatches(cls):
            return with_history_as(cls, value)
        made = object.__new__(cls)
        made._impl = value._impl
        return made
    if isinstance(value, list | tuple):
        items = [_as_subclass(cls, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


Tensor.__torch_function__ = classmethod(_call_and_wrap)

# Types known to have no `__torch_function__` of their own.
_plain: set[type] = {Tensor, int, float, bool, str, type(None), complex, list, tuple, dict}
_SINGLE = frozenset((Tensor, int, float, bool, str, type(None), complex))  # those that hold no other values


def is_plain(kind: type) -> bool:
    """Return whether a type never overrides: it has no `__torch_function__`, or the disabled one."""
    if kind in _plain:
        return True
    method = getattr(kind, "__torch_function__", None)
    # As in torch, a class with `__torch_dispatch__` overrides functions only if it defines its own `__torch_function__`.
    leaves_it = dispatches(kind) and getattr(method, "__func__", None) is _call_and_wrap
    if method is None or method is disabled_torch_function or leaves_it:
        _plain.add(kind)
        return True
    return False


def is_overriding(kind: type) -> bool:
    """Return whether a type overrides functions now."""
    return not is_plain(kind) and not (_state.disabled and issubclass(kind, Tensor))


def are_plain(args: tuple, kwargs: dict) -> bool:
    """Return whether no argument, or element of one, is of a type that ever overrides."""
    return all(is_plain(type(value)) for value in _flat((*args, *kwargs.values())))


def overriding_arguments(args: tuple, kwargs: dict) -> list[Any]:
    """Return the arguments whose types override, one per type: subclasses before their bases, otherwise in order."""
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
    """Return the first answer that is not NotImplemented: of the innermost mode, then of the overriding arguments' types.

    TypeError where all decline.
    """
    kinds = tuple(type(value) for value in deciding)
    if any(map(_is_foreign, kinds)):
        raise TypeError(f"{getattr(function, '__name__', 'a function')}() {_TWO_LIBRARIES}")
    if function_modes.entered and function_modes.are_active():
        with function_modes.innermost_popped() as mode:
            result = mode.__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in deciding:
        result = value.__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(_no_handler_message(function, kinds))


def _no_handler_message(function: Callable, kinds: tuple[type, ...]) -> str:
    module = (getattr(function, "__module__", None) or "torch").replace("rushlight", "torch", 1)
    name = f"{module}.{getattr(function, '__qualname__', function)}"
    found = f"no implementation found for '{name}' on types that implement __torch_function__: [{', '.join(map(_name, kinds))}]"
    modes = function_modes.stack()
    return f"{found} nor was it found on the currently active mode {modes[-1]}" if modes else found


def _name(kind: type) -> str:
    return kind.__qualname__


def ask(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Return the result of a call according to the innermost mode and the types of the arguments, while this thread has an
    active mode."""
    return call_override(function, overriding_arguments(args, kwargs), args, kwargs)


def asks_modes() -> bool:
    """Return whether this thread has an active mode."""
    return bool(function_modes.entered) and function_modes.are_active()


def overridable(function: Callable) -> Callable:
    """Make `function` ask modes and the types of its arguments first."""

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if type(value) not in _plain:
                break
        else:
            if not function_modes.entered and (not kwargs or all([type(value) in _SINGLE for value in kwargs.values()])):
                return function(*args, **kwargs)
        deciding = overriding_arguments(args, kwargs)
        if deciding or asks_modes():
            return call_override(public, deciding, args, kwargs)
        return function(*args, **kwargs)

    public._asks_modes = True
    return public


def as_subclass(tensor: Tensor, kind: type) -> Tensor:
    """Return a tensor of class `kind` over the same impl; TypeError unless it is a subclass of Tensor."""
    if not (isinstance(kind, type) and issubclass(kind, Tensor)):
        raise TypeError(f"as_subclass expects a subclass of Tensor, got {kind!r}")
    return _as_subclass(kind, wrap(tensor._impl)) if kind is not Tensor else wrap(tensor._impl)
