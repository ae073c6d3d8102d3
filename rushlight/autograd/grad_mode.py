"""Grad modes: no_grad, enable_grad, set_grad_enabled, inference_mode. Context managers and decorators, per thread."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable

from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.thread_state import state

_AUTOGRAD = bit(DispatchKey.Autograd)
_VIEWS = bit(DispatchKey.ADInplaceOrView)


class _Multithreading(threading.local):
    enabled = True


_multithreading = _Multithreading()


class Mode:
    """A context manager that also decorates functions and generator functions."""

    def _fresh(self) -> Mode:
        return type(self)()

    def __call__(self, function: Callable) -> Callable:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated: only their __init__ runs in the mode. Decorate functions, or that method.",
                FutureWarning, stacklevel=2,
            )  # fmt: skip
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self._fresh():
                return function(*args, **kwargs)

        return inside

    def _wrap_generator(self, function: Callable) -> Callable:
        """Wrap a generator function: its code runs in the mode, but its caller's code between two yields does not."""

        @functools.wraps(function)
        def inside(*args, **kwargs):
            generator = function(*args, **kwargs)
            resume, value = generator.send, None
            while True:
                try:
                    with self._fresh():
                        item = resume(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    resume, value = generator.send, (yield item)
                except GeneratorExit:
                    with self._fresh():
                        generator.close()
                    raise
                except BaseException as error:
                    resume, value = generator.throw, error

        return inside


class set_grad_enabled(Mode):
    """Turn recording on or off: at once when called, and until the end of the block when used with `with`."""

    def __init__(self, mode: bool):
        self.mode = bool(mode)
        self.previous = state.grad_enabled
        state.grad_enabled = self.mode

    def _fresh(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __call__(self, function: Callable) -> Callable:
        state.grad_enabled = self.previous
        return super().__call__(function)

    def __enter__(self):
        state.grad_enabled = self.mode

    def __exit__(self, *error):
        state.grad_enabled = self.previous


class _Switch(Mode):
    enabled: bool

    def __new__(cls, function: Callable | None = None):
        made = object.__new__(cls)
        return made if function is None else made(function)

    def __enter__(self):
        self.previous = state.grad_enabled
        state.grad_enabled = self.enabled

    def __exit__(self, *error):
        state.grad_enabled = self.previous


class no_grad(_Switch):
    """Operations in the block are not recorded for autograd."""

    enabled = False


class enable_grad(_Switch):
    """Operations in the block are recorded, also inside `no_grad`."""

    enabled = True


class inference_mode(Mode):
    """Like `no_grad`, and tensors made in the block carry no autograd state: no views or versions are tracked.

    Normal tensors still are normal inside: writes to them count, and views of them are normal tensors.
    """

    def __new__(cls, mode: bool | Callable = True):
        made = object.__new__(cls)
        if callable(mode):
            made.mode = True
            return made(mode)
        made.mode = mode
        return made

    def _fresh(self) -> inference_mode:
        return inference_mode(self.mode)

    def __enter__(self):
        self.previous = (state.inference, state.grad_enabled, state.include, state.exclude)
        state.inference = self.mode
        state.grad_enabled = not self.mode
        if self.mode:
            state.include &= ~_VIEWS
            state.exclude |= _AUTOGRAD
        else:
            state.include |= _VIEWS
            state.exclude &= ~_AUTOGRAD

    def __exit__(self, *error):
        state.inference, state.grad_enabled, state.include, state.exclude = self.previous


def is_grad_enabled() -> bool:
    """Return whether operations are being recorded."""
    return state.grad_enabled


def is_multithreading_enabled() -> bool:
    """Return what `set_multithreading_enabled` has set."""
    return _multithreading.enabled


def is_inference_mode_enabled() -> bool:
    """Return whether inference mode is active."""
    return state.inference


class set_multithreading_enabled(Mode):
    """Say whether a backward may use threads of other devices: at once when called, and for the block with `with`.

    The setting has no effect: the only device is the CPU, whose backward runs in the calling thread, as in PyTorch. It is
    stored for programs that read and restore it.

    Args:
        mode (bool): whether it may.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev, _multithreading.enabled = _multithreading.enabled, mode

    def __enter__(self) -> None:
        """Does nothing: the setting took effect when the object was made."""

    def __exit__(self, *error: object) -> None:
        _multithreading.enabled = self.prev

    def clone(self) -> set_multithreading_enabled:
        """Return another context manager of the same mode."""
        return type(self)(self.mode)

    def _fresh(self) -> Mode:
        return self.clone()
