"""The frame hook at work: `optimize` has a function's frames captured while it runs; `disable` leaves functions out.

In: a backend and a function. Out: the function, whose calls (and those that it makes) are captured as they happen.
"""

from __future__ import annotations

import functools
import sysconfig
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight._C import cache_entries, reset_code, set_eval_frame, skip_code
from rushlight.core.thread_state import state
from rushlight.dynamo.capture import GuardedCode, Unsupported, capture_frame
from rushlight.dynamo.graph_builder import Backend
from rushlight.dynamo.instructions import parameter_names

_PACKAGE = rushlight.__path__[0]
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_lock = threading.RLock()
_captured: set[types.CodeType] = set()


def _is_left_alone(code: types.CodeType) -> bool:
    path = code.co_filename
    if not all(name.isidentifier() for name in parameter_names(code)):
        return True  # a comprehension, whose frame goes on with an iterator that nobody else sees
    if path.startswith(_PACKAGE):
        return not path.startswith(f"{_PACKAGE}/nn/modules/")
    return path.startswith(_LIBRARIES) or path.startswith("<frozen")


class FrameCallback:
    """Captures the frames that the hook asks about."""

    def __init__(self, backend: Backend, fullgraph: bool = False, recompile_limit: int = 8,
                 log: Callable[[str, str], None] | None = None) -> None:  # fmt: skip
        self.backend = backend
        self.fullgraph = fullgraph
        self.recompile_limit = recompile_limit
        self.log = log or (lambda stage, text: None)

    def __call__(self, frame: Any, entries: list, frame_state: dict) -> GuardedCode | None:
        code = frame.f_code
        if state.modes:
            return None
        if _is_left_alone(code):
            skip_code(code)
            return None
        if entries:
            self._log_recompile(frame, entries)
        if len(entries) >= self.recompile_limit:
            warnings.warn(
                f"compile: {code.co_qualname} ({code.co_filename}:{code.co_firstlineno}) was compiled {len(entries)} times "
                "and now runs in eager; the log 'recompiles' says what changed each time", stacklevel=2,
            )  # fmt: skip
            skip_code(code)
            return None
        with _lock:
            found = self._capture(frame)
            _captured.add(code)
        if found is None:
            skip_code(code)
            return None
        self.log("guards", found.guards.text())
        self.log("bytecode", found.source)
        if found.break_reason is not None:
            self.log("graph_breaks", f"{code.co_filename}: {code.co_qualname}: {found.break_reason.reason}")
        return found

    def _capture(self, frame: Any) -> GuardedCode | None:
        try:
            return capture_frame(frame, self.backend, self.fullgraph)
        except Unsupported:
            raise
        except Exception as error:
            if self.fullgraph:
                raise
            warnings.warn(
                f"compile: capturing {frame.f_code.co_qualname} failed, so it runs in eager: {type(error).__name__}: {error}. "
                "This is an error of Rushlight; please report it with the function.", stacklevel=3,
            )  # fmt: skip
            return None

    def _log_recompile(self, frame: Any, entries: list) -> None:
        values = {name: frame.f_locals[name] for name in parameter_names(frame.f_code)}
        values |= {"__globals": frame.f_globals, "__closure": frame.closure}
        reasons = [entry.guarded_code.guards.explain(values) for entry in entries]
        self.log("recompiles", f"{frame.f_code.co_qualname} is captured again: " + "; ".join(reasons))


def optimize(callback: Callable) -> Callable[[Callable], Callable]:
    """A decorator that has `callback` asked about the function's frames and those below them."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            before = set_eval_frame(callback)
            try:
                return function(*args, **kwargs)
            finally:
                set_eval_frame(before)

        skip_code(run.__code__)
        return run

    return decorate


def disable(function: Callable) -> Callable:
    """`function`, which is never captured, nor what it calls."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        before = set_eval_frame(None)
        try:
            return function(*args, **kwargs)
        finally:
            set_eval_frame(before)

    run._rushlight_disabled = True
    skip_code(run.__code__)
    return run


def reset() -> None:
    """Forget everything that was captured."""
    with _lock:
        for code in _captured:
            reset_code(code)
        _captured.clear()


def debug_cache_entries(function: Callable) -> list:
    """The cache entries of a function, the latest first."""
    return cache_entries(getattr(function, "__wrapped__", function).__code__)


