"""Generators: followed from one `yield` to the next, as values are requested."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.values.base import Raised, Value
from rushlight.dynamo.values.classes import ClassValue
from rushlight.dynamo.values.constant import NONE, ConstantValue, raised
from rushlight.dynamo.values.exceptions import ExceptionValue
from rushlight.dynamo.values.iterators import IteratorValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Suspended


class GeneratorValue(IteratorValue):
    """A generator. `frame` is its function's frame, suspended at a `yield`; `result` is its return value."""

    def __init__(self, frame: Suspended) -> None:
        super().__init__(iter(self.advance, None), types.GeneratorType, runs_code=True)
        self.frame = frame
        self.result: Value = NONE
        self.is_started = self.is_finished = self.is_running = False
        frame.session.generators.append(self)

    def check_left(self) -> None:
        """Close a generator that is dropped. GraphBreak if that has an effect, because Python may close it at another time."""
        if not self.is_started or self.is_finished or not self.frame.is_guarded():
            return
        session = self.frame.session
        nodes, grad = len(session.graph.graph.nodes), state.grad_enabled
        with session.effects.apart() as changed:
            try:
                self.close()
            except Raised:
                changed.append(self)
        if changed or len(session.graph.graph.nodes) != nodes or state.grad_enabled is not grad:
            raise GraphBreak("a generator is left inside of a try or with block")

    def attribute(self, tx: Following, name: str) -> Value:
        return tx.bound_method(self, name)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "send" and len(args) == 1:
            return self._value_or_stop(self.send(args[0]))
        if name == "throw" and args:
            return self._value_or_stop(self.throw(_make_exception(tx, *args)))
        if name == "close":
            self.close()
            return NONE
        return super().method(tx, name, args, kwargs)

    def _value_or_stop(self, found: Value | None) -> Value:
        if found is None:
            raise self.stop()
        return found

    def stop(self) -> Raised:
        """Return the StopIteration that `next` raises at the end."""
        result, self.result = self.result, NONE
        is_none = result.is_constant() and result.constant() is None
        return Raised(ExceptionValue(StopIteration, [] if is_none else [result]))

    def send(self, value: Value) -> Value | None:
        """Resume with `value` as value of the `yield`; returns the next value, None when the function returns."""
        is_none = value.is_constant() and value.constant() is None
        if not self.is_started and not self.is_finished and not is_none:
            raise raised(TypeError("can't send non-None value to a just-started generator"))
        return self.advance(value)

    def throw(self, error: Value) -> Value | None:
        """Resume by raising an exception at the `yield`."""
        delegate = self.frame.delegate() if self.is_started and not self.is_finished else None
        if delegate is None or not isinstance(delegate, GeneratorValue):
            if delegate is not None and not isinstance(delegate, IteratorValue):
                raise GraphBreak(f"an exception is thrown into {delegate}")
            return self.advance(error=Raised(error))
        if issubclass(error.python_type(), GeneratorExit):
            delegate.close()
            return self.advance(error=Raised(error))
        try:
            found = delegate.throw(error)
        except Raised as other:
            return self.advance(error=other)
        if found is not None:
            return found
        result, delegate.result = delegate.result, NONE
        return self.advance(result, is_result=True)

    def close(self) -> None:
        """End the function by raising GeneratorExit at its `yield`."""
        if not self.is_started:
            self.is_finished = True
        if self.is_finished:
            return
        try:
            found = self.throw(ExceptionValue(GeneratorExit, []))
        except Raised as error:
            if not issubclass(error.value.python_type(), GeneratorExit | StopIteration):
                raise
            return
        if found is not None:
            raise raised(RuntimeError("generator ignored GeneratorExit"))

    def advance(self, sent: Value = NONE, error: Raised | None = None, is_result: bool = False) -> Value | None:
        """Follow the function to its next `yield`; None when it returns. With `is_result`, `sent` is the result of its `yield
        from`."""
        if self.is_running:
            raise raised(ValueError("generator already executing"))
        if error is not None and not self.is_started:
            self.is_finished = True
        if self.is_finished:
            if error is not None:
                raise error
            return None
        self.is_running, self.is_started, was_started = True, True, self.is_started
        try:
            found = self.frame.go_on(sent if was_started else None, error, is_result)
        except Raised as escaping:
            self.is_finished = True
            raise _as_seen_by_caller(escaping) from None
        finally:
            self.is_running = False
        if found is None:
            self.is_finished, self.result = True, self.frame.result
        return found


def _make_exception(tx: Following, error: Value, *more: Value) -> Value:
    """Return the exception that the arguments of `throw` stand for."""
    if more:
        raise GraphBreak("throw with a type and a value")
    made = error.call(tx, [], {}) if isinstance(error, ClassValue) else error
    if not issubclass(made.python_type(), BaseException):
        name = made.python_type().__name__
        raise raised(TypeError(f"exceptions must be classes or instances deriving from BaseException, not {name}"))
    return made


def _as_seen_by_caller(error: Raised) -> Raised:
    """Return the exception that the generator's caller gets: StopIteration becomes a RuntimeError."""
    if not issubclass(error.value.python_type(), StopIteration):
        return error
    made = ExceptionValue(RuntimeError, [ConstantValue("generator raised StopIteration")])
    made.attributes["__cause__"] = error.value
    return Raised(made)
