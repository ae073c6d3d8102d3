"""Attributes of Tensor that call function modes. They replace the plain attributes while any thread has a mode.

In: the class Tensor with methods and properties that ignore modes. Out: while a mode is entered, `x.size()` and `x.shape` go to
the mode as `Tensor.size` and `Tensor.shape.__get__`, as in torch. Without modes the class is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from rushlight.core import function_modes
from rushlight.core.overrides import ask
from rushlight.core.tensor import Tensor

# Attributes that never call a function mode: those of Python and of the library itself, and those that ignore the tensor.
_LEFT_ALONE = frozenset(
    "__new__ __init__ __class__ __dict__ __torch_function__ __torch_dispatch__ __weakref__ __hash__ __dlpack_device__ "
    "__init_subclass__ __copy__ __reduce__ __slots__ __module__ __doc__ _autograd_meta as_subclass __array_wrap__ __dir__ "
    "_impl".split()
)


class _AskingFunction:
    """A method of Tensor that calls modes. It equals the plain method, so lookups in dicts still find it."""

    def __init__(self, plain: Callable, name: str):
        self.__wrapped__ = plain
        self.__name__ = name
        self.__qualname__ = getattr(plain, "__qualname__", name)
        self.__doc__ = plain.__doc__
        self.__module__ = getattr(plain, "__module__", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if function_modes.are_active():
            return ask(self, args, kwargs)
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __eq__(self, other: object) -> bool:
        return other is self or other == self.__wrapped__

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return f"<method '{self.__name__}' of 'torch._C.TensorBase' objects>"


class _AskingProperty:
    """A property of Tensor that calls modes: `x.shape` is a call of `Tensor.shape.__get__`."""

    def __init__(self, plain: property, name: str):
        self.__doc__ = plain.__doc__
        self.__name__ = name
        for attribute in ("__get__", "__set__", "__delete__"):
            self.__dict__[attribute] = _AskingFunction(getattr(plain, attribute), attribute)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self.__dict__["__get__"](instance)

    def __set__(self, instance: Any, value: Any) -> None:
        self.__dict__["__set__"](instance, value)

    def __delete__(self, instance: Any) -> None:
        self.__dict__["__delete__"](instance)


_asking: dict[str, Any] = {}
_plain: dict[str, Any] = {}


def _can_answer_itself(value: Any) -> bool:
    return getattr(value, "_asks_modes", False)


def _make(name: str, value: Any) -> Any:
    if name in _LEFT_ALONE or _can_answer_itself(value):
        return None
    if isinstance(value, property):
        return _AskingProperty(value, name)
    return _AskingFunction(value, name) if isinstance(value, FunctionType) else None


def install() -> None:
    """Replace the plain attributes by those that call modes."""
    for name, value in list(vars(Tensor).items()):
        if isinstance(value, property | FunctionType):
            if _plain.get(name) is not value:
                _plain[name], _asking[name] = value, _make(name, value)
            if _asking[name] is not None:
                setattr(Tensor, name, _asking[name])


def remove() -> None:
    """Restore Tensor's plain attributes."""
    for name, value in _plain.items():
        if vars(Tensor).get(name) is _asking[name]:
            setattr(Tensor, name, value)

