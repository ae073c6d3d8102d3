"""`torch.utils._contextlib`: contexts that decorate functions, generators and classes as well."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def context_decorator(context: Any, function: Callable) -> Callable:
    """A function that runs each call in a context; `context` is one, or makes one. A generator runs each of its steps in it."""
    make = context if callable(context) and not isinstance(context, AbstractContextManager) else lambda: context
    if inspect.isgeneratorfunction(function):
        return _of_generator(make, function)

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return decorated


def _of_generator(make: Callable, function: Callable) -> Callable:
    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        generator, step, given = function(*args, **kwargs), "send", None
        try:
            while True:
                with make():
                    value = getattr(generator, step)(given)
                try:
                    step, given = "send", (yield value)
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    step, given = "throw", error
        except StopIteration as end:
            return end.value

    return decorated


class _DecoratorContextManager(AbstractContextManager):
    """A context that decorates functions; each call runs in a context of its own, which `clone` makes."""

    def __call__(self, function: Callable) -> Callable:
        """The function, which runs in the context."""
        return context_decorator(self.clone, function)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *error: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another context of the class; those whose constructors take arguments say how."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without arguments, whose class decorates functions as well: `@no_grad`."""

    def __new__(cls, function: Callable | None = None) -> Any:
        made = super().__new__(cls)
        return made if function is None else made(function)
