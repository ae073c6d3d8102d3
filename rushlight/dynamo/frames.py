"""What the frame hook asks: a callback that captures frames, within its limits, and keeps what it made.

In: a frame that none of the entries fits. Out: an entry for it, or that it runs as it is.
"""

from __future__ import annotations

import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

from rushlight._C import CacheEntry, cache_entries, remove_entry, reset_code, skip_code
from rushlight.core.thread_state import state
from rushlight.dynamo.capture import GuardedCode, Unsupported, capture_frame
from rushlight.dynamo.errors import BackendCompilerFailed, Raised
from rushlight.dynamo.graph_builder import Backend
from rushlight.dynamo.regions import is_compiled_wrapper, is_left_alone
from rushlight.nn.modules.module import Module

Log = Callable[[str, Callable[[], str]], None]

# Capture changes the state of its thread only, but a function that two threads ask for is to be captured once.
_lock = threading.RLock()
_captured: set[types.CodeType] = set()


class FrameCallback:
    """Captures the frames that the hook asks about. What it made serves the functions optimized with it, and no others.

    `fullgraph` makes a graph break an error. A function that was captured `recompile_limit` times, a method that often for one
    object, runs in eager when none of its guards holds.
    """

    def __init__(self, backend: Backend, fullgraph: bool = False, recompile_limit: int = 8) -> None:
        self.backend = backend
        self.fullgraph = fullgraph
        self.recompile_limit = recompile_limit
        self._codes: set[types.CodeType] = set()
        self._counts: dict[tuple[types.CodeType, int], int] = {}

    def begin(self, code: types.CodeType) -> tuple[Backend, Log]:
        """The backend for one capture, and where its stages are logged."""
        return self.backend, _no_log

    def finished(self, code: types.CodeType, found: GuardedCode) -> None:
        """Called with what was captured."""

    def __call__(self, frame: Any, entries: list[CacheEntry], frame_state: dict) -> GuardedCode | CacheEntry | bool | None:
        """What the hook asks: an entry for the frame, None to run it as it is, False to do so from now on."""
        code = frame.f_code
        if state.modes or self._counts.get(_subject(frame), 0) > self.recompile_limit:
            return None
        if is_left_alone(code, frame.f_globals):
            skip_code(code)
            return None
        with _lock:
            values = _values_of(frame)
            own = [entry for entry in cache_entries(code) if entry.owner is self]
            for entry in own:  # another thread may have been here while this one waited
                if entry.check_fn is None or entry.check_fn(*values.values()):
                    return entry
            return self._new_entry(frame, own, values)

    def forget(self) -> None:
        """Remove all that was captured."""
        with _lock:
            for code in self._codes:
                for entry in cache_entries(code):
                    if entry.owner is self:
                        remove_entry(code, entry)
            self._codes.clear()
            self._counts.clear()

    def _new_entry(self, frame: Any, own: list[CacheEntry], values: dict) -> GuardedCode | bool | None:
        code = frame.f_code
        backend, log = self.begin(code)
        _captured.add(code)
        self._codes.add(code)
        if own:
            failed = [entry.guarded_code.guards.explain(values) for entry in own]
            log("recompiles", lambda: f"{_described(code)} is captured again: " + "; ".join(failed))
            if self._counts.get(_subject(frame), 0) == self.recompile_limit:
                self._counts[_subject(frame)] += 1
                warnings.warn(
                    f"compile: {_described(code)} was compiled {self.recompile_limit} times, the limit "
                    f"(RUSHLIGHT_RECOMPILE_LIMIT), and now runs in eager where no guard holds. The last guard that failed: "
                    f"{failed[0]}", stacklevel=3,
                )  # fmt: skip
                return None
        self._counts[_subject(frame)] = self._counts.get(_subject(frame), 0) + 1
        found = self._capture(frame, backend)
        if isinstance(found, GuardedCode):
            self.finished(code, found)
            log("guards", found.guards.text)
            log("bytecode", lambda: found.source)
            if found.break_reason is not None:
                log("graph_breaks", lambda: found.break_reason.text())
        return found

    def _capture(self, frame: Any, backend: Backend) -> GuardedCode | bool | None:
        try:
            return capture_frame(frame, backend, self.fullgraph) or False
        except Raised:
            return None  # the frame itself raises it
        except (Unsupported, BackendCompilerFailed):
            raise
        except Exception as error:
            if self.fullgraph:
                raise
            warnings.warn(
                f"compile: capturing {_described(frame.f_code)} failed, so it runs in eager: {type(error).__name__}: {error}. "
                "This is an error of Rushlight; please report it with the function.", stacklevel=4,
            )  # fmt: skip
            return False


def _subject(frame: Any) -> tuple[types.CodeType, int]:
    """Whose captures are counted together: those of a method by its object."""
    receiver = frame.f_locals.get("self")
    return frame.f_code, id(receiver) if isinstance(receiver, Module) else 0


def _no_log(stage: str, text: Callable[[], str]) -> None:
    """Nobody reads the stages."""


def _described(code: types.CodeType) -> str:
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def _values_of(frame: Any) -> dict[str, Any]:
    """What guards of a frame look at, in the order of their parameters."""
    return {**frame.f_locals, "__globals": frame.f_globals, "__closure": frame.closure or None}


def reset() -> None:
    """Forget everything that was captured."""
    with _lock:
        for code in _captured:
            reset_code(code)
        _captured.clear()


def code_of(function: Callable | types.CodeType) -> types.CodeType:
    """The code that runs when a function is called; of a compiled function, the code that is captured."""
    if isinstance(function, types.CodeType):
        return function
    if is_compiled_wrapper(function):
        function = function._rushlight_followed
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        raise TypeError(f"expected a function written in Python or its code, got {type(function).__name__}")
    return code


def debug_cache_entries(function: Callable | types.CodeType) -> list[CacheEntry]:
    """The cache entries of a function, the latest first; of a compiled function, its own. TypeError for other callables."""
    owner = function._rushlight_callback if is_compiled_wrapper(function) else None
    entries = [entry for entry in cache_entries(code_of(function)) if entry.check_fn is not None]
    return [entry for entry in entries if owner is None or entry.owner is owner]
