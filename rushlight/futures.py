"""`torch.futures`: values that will be there later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """A value, or an error, that somebody will set; callbacks run when it is there, in the thread that sets it."""

    def __init__(self, *, devices: Sequence | None = None) -> None:
        if devices:
            raise ValueError(f"there are no devices other than the CPU, whose futures need none: got {list(devices)}")
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._value: object = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Return whether the value or an error is there."""
        return self._event.is_set()

    def wait(self) -> T:
        """Return the value, once it is there; an error is raised."""
        self._event.wait()
        return self.value()

    def value(self) -> T:
        """Return the value, which must be there; an error is raised. RuntimeError: it is not there yet."""
        if not self.done():
            raise RuntimeError("the future has no value yet: wait() for it")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Callable[[Future[T]], object]) -> Future:
        """Return a future of what `callback` makes of this one, when it is done."""
        following: Future = Future()

        def run() -> None:
            try:
                following.set_result(callback(self))
            except BaseException as error:
                following.set_exception(error)

        self._call_when_done(run)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback` with this future when it is done; at once where it is."""
        self._call_when_done(lambda: callback(self))

    def set_result(self, result: T) -> None:
        """Set the value. RuntimeError: it has one, or an error."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which `wait` raises. RuntimeError: there is a value or an error."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _call_when_done(self, call: Callable[[], None]) -> None:
        with self._lock:
            if not self.done():
                self._callbacks.append(call)
                return
        call()

    def _finish(self, value: object, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError("Attempting to mark a completed Future as complete again. A Future can be set once.")
            self._value, self._error = value, error
            self._event.set()
            calls, self._callbacks = self._callbacks, []
        for call in calls:
            call()


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """Return a future that is done when all of the given ones are; its value is the list of them, or the first error."""
    together: Future[list[Future]] = Future()
    missing = [len(futures)]
    lock = threading.Lock()

    def one_done(_: Future) -> None:
        with lock:
            missing[0] -= 1
            last = missing[0] == 0
        if last:
            finish()

    def finish() -> None:
        error = next((each._error for each in futures if each._error is not None), None)
        together.set_result(list(futures)) if error is None else together.set_exception(error)

    for each in futures:
        each.add_done_callback(one_done)
    if not futures:
        finish()
    return together


def wait_all(futures: list[Future]) -> list:
    """Return the values of all futures; the first error is raised."""
    return [each.wait() for each in collect_all(futures).wait()]
