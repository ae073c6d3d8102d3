"""`fork` and `wait`: run scripted code concurrently, in a thread pool.

Waiting for work that has not started runs it in the waiting thread, so that nested forks cannot deadlock on the pool.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import GenericAlias
from typing import TYPE_CHECKING

from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.lazy_module import LazyModule
from rushlight.core.parallel import get_num_threads
from rushlight.core.thread_state import state

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from rushlight.jit.runtime.code import Code
    from rushlight.jit.runtime.interpreter import Interpreter

threads = LazyModule("concurrent.futures")


class Future:
    """A value that is still being computed, or not started yet."""

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, work: Callable[[], object] | None = None):
        self._work = work
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._value: object = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], object]] = []

    def run(self) -> None:
        """Do the work, unless it has been started."""
        with self._lock:
            work, self._work = self._work, None
        if work is None:
            return
        try:
            self._value = work()
        except BaseException as error:
            self._error = error
        self._finish()

    def wait(self) -> object:
        """Wait for the value; an exception of the work is raised here."""
        self.run()
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def done(self) -> bool:
        """Return whether the value is available."""
        return self._done.is_set()

    def value(self) -> object:
        """Return the available value: RuntimeError if it is not. An exception of the work is raised here."""
        if not self.done():
            raise RuntimeError("the Future is not completed: wait() for it before value() is asked for")
        return self.wait()

    def set_result(self, value: object) -> None:
        """Complete it from outside. RuntimeError if it is complete, or has work of its own."""
        self._complete(value, None)

    def set_exception(self, error: BaseException) -> None:
        """Complete it with an exception, which `wait` and `value` raise. AssertionError for anything but an exception."""
        if not isinstance(error, Exception):
            raise AssertionError(f"{error!r} is of type {type(error)}, not an Exception.")
        self._complete(None, error)

    def _complete(self, value: object, error: BaseException | None) -> None:
        with self._lock:
            if self._work is not None or self.done():
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can only be "
                                   "marked completed once.")  # fmt: skip
            self._value, self._error = value, error
        self._finish()

    def _finish(self) -> None:
        """Mark the value as available, and run the callbacks."""
        with self._lock:
            self._done.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future], object]) -> None:
        """Call a function with this Future once it is complete: in the completing thread, or at once if it is complete."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future], object]) -> Future:
        """Return a Future of the callback's result, which is called once this one is complete."""
        made = Future()

        def run(completed: Future) -> None:
            try:
                made.set_result(callback(completed))
            except Exception as error:
                made.set_exception(error)

        self.add_done_callback(run)
        return made


@cache
def _thread_pool() -> ThreadPoolExecutor:
    return threads.ThreadPoolExecutor(max(2, get_num_threads()), thread_name_prefix="rushlight-fork")


_CARRIED = ("include", "exclude", "grad_enabled", "inference", "modes", "saved_tensor_hooks", "anomaly", "autocast",
            "batch_levels", "dual_levels")  # fmt: skip
"""The parts of a thread's state that forked code keeps."""
_TRACER = bit(DispatchKey.Tracer)


def _carried_state() -> dict[str, object]:
    """Return the part of this thread's state that another thread takes over, with a copy of its mode stack. A trace stays with
    its thread."""
    carried = {name: getattr(state, name) for name in _CARRIED}
    return {**carried, "include": state.include & ~_TRACER, "modes": list(state.modes)}


@contextmanager
def _with_state(ambient: dict[str, object]) -> Iterator[None]:
    """Return a context manager in which this thread has that state."""
    before = {name: getattr(state, name) for name in _CARRIED}
    try:
        for name, value in ambient.items():
            setattr(state, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(state, name, value)


def submit(work: Callable[[], object]) -> Future:
    """Run work on a pool thread, in this thread's grad mode and other modes."""
    ambient = _carried_state()

    def run() -> object:
        with _with_state(ambient):
            return work()

    future = Future(run)
    _thread_pool().submit(future.run)
    return future


def fork(interpreter: Interpreter, code: Code, arguments: list) -> Future:
    """Run a forked body."""
    return submit(lambda: interpreter.run(code, arguments)[0])
