"""`torch.utils._contextlib`: contexts that also decorate functions, generators and classes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def context_decorator(context: Any, function: Callable) -> Callable:
    """Wrap a function so that each call runs in a context; `context` is one, or creates one. A generator runs each step in
    it."""
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
    """A context that decorates functions; each call runs in a new context from `clone`."""

    def __call__(self, function: Callable) -> Callable:
        """Wrap the function so that it runs in the context."""
        return context_decorator(self.clone, function)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *error: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another context of the class; classes whose constructors take arguments override this."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without arguments, whose class also decorates functions: `@no_grad`."""

    def __new__(cls, function: Callable | None = None) -> Any:
        made = super().__new__(cls)
        return made if function is None else made(function)
