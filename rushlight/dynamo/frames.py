"""The frame hook's callback: it captures frames, within their recompile limits, and caches the results.

In: a frame that no cache entry fits. Out: an entry for it, or the decision to run it in eager.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rushlight._C import CacheEntry, cache_entries, remove_entry, reset_code, skip_code
from rushlight.autograd.profiler import compile_stage
from rushlight.core.lazy_module import LazyModule
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.dynamic import ConstraintViolationError, History, OpenSizes
from rushlight.dynamo.errors import BackendCompilerFailed, GraphBreak, RecompileError
from rushlight.dynamo.guarded_code import GuardedCode, Unsupported
from rushlight.dynamo.regions import force_eager, is_compiled_wrapper, is_left_alone
from rushlight.dynamo.rules import RULES, counters
from rushlight.dynamo.values.base import Raised
from rushlight.nn.modules.module import Module

if TYPE_CHECKING:
    from rushlight.dynamo.graph_builder import Backend

T = TypeVar("T")

capture = LazyModule("rushlight.dynamo.capture")  # lazy, because a process that only reuses kept captures does not need it



class Log(Protocol):
    """Receives the stages of one capture."""

    def __call__(
        self, stage: str, text: Callable[[], str], subject: Callable[[], object] | None = None, title: str = ""
    ) -> None:  # fmt: skip
        """Log a stage: `text` makes its text, `subject` the object behind it. `title` distinguishes logs of the same stage."""




class KeptCaptures(Protocol):
    """A store of one frame's captures for reuse in other processes."""

    def find(self, history: History) -> GuardedCode | None:
        """Return a stored capture that fits the frame, and record in `history` what it met."""

    def keep(self, history: History, found: GuardedCode) -> None:
        """Store the first capture made of the frame."""


class _Codes:
    """A set of weakly referenced code objects, compared by identity (equal code objects may belong to different files)."""

    def __init__(self) -> None:
        self._found: dict[int, weakref.ref] = {}

    def add(self, code: types.CodeType) -> None:
        key = id(code)
        if key not in self._found:
            self._found[key] = weakref.ref(code, lambda _: self._found.pop(key, None))

    def take(self) -> list[types.CodeType]:
        """Return the code objects still alive, and empty the set."""
        found, self._found = self._found, {}
        return [code for reference in list(found.values()) if (code := reference()) is not None]


# Held during a capture, so that two threads do not capture the same function twice.
_lock = threading.RLock()
_stance = "default"
_paused = False  # True while a capture has the garbage collector disabled
_captured = _Codes()
_resets = 0  # the number of calls of `reset`


class FrameCallback:
    """Captures the frames that the hook asks about. Its captures only serve functions optimized with it.

    `fullgraph` turns a graph break into an error. A function captured `recompile_limit` times (a method: that often for one
    module) runs in eager when no guard holds. `dynamic` selects the sizes that captures leave open (see `OpenSizes`).
    """

    def __init__(
        self, backend: Backend, fullgraph: bool = False, recompile_limit: int = 8, dynamic: bool | None = None
    ) -> None:
        self.backend = backend
        self.dynamic = dynamic
        self.fullgraph = fullgraph
        self.recompile_limit = recompile_limit
        self._codes = _Codes()
        self._counts: dict[tuple[int, int], _Count] = {}

    def limit(self) -> int:
        """Return how often a frame may be captured."""
        return self.recompile_limit

    def is_dynamic(self) -> bool | None:
        """Return which sizes the next capture leaves open (see `OpenSizes`)."""
        return True if self.dynamic is None and not RULES.assume_static_by_default else self.dynamic

    def begin(self, code: types.CodeType) -> tuple[Backend, Log]:
        """Return the backend and the log for one capture."""
        return self.backend, _no_log

    def finished(self, frame: Any, found: GuardedCode) -> None:
        """Receive the result of a frame's capture."""

    def kept(self, frame: Any) -> KeptCaptures | None:
        """Return the store for a frame's captures, or None. Asked before the first capture."""

    def __call__(
        self, frame: Any, cache_entry: CacheEntry | None, frame_state: dict
    ) -> GuardedCode | CacheEntry | bool | None:
        """Answer the hook: an entry for the frame, None to run it in eager, False to run it in eager from now on."""
        code = frame.f_code
        watched = state.modes or state.batch_levels or state.dual_levels or state.makes_elsewhere or state.asks_function_modes
        if watched or self._count(frame).captures > self.limit():
            return None
        if is_left_alone(code, frame.f_globals):
            skip_code(code)
            return None
        with _lock:
            values = _values_of(frame)
            own = [entry for entry in cache_entries(code) if entry.owner is self]
            for entry in own:  # another thread may have captured the frame while this one waited for the lock
                if entry.check_fn is None or entry.check_fn(*values.values()):
                    return entry
            return self._new_entry(frame, own, values) if self._may_capture(frame, own, values) else None

    def _may_capture(self, frame: Any, own: list[CacheEntry], values: dict) -> bool:
        """Return whether the current stance allows capturing a frame that no entry fits."""
        if _stance == "fail_on_recompile" and _has_tensors(frame):
            code, failed = frame.f_code, [f"\n    - {entry.guarded_code.guards.explain(values)}" for entry in own]
            raise RuntimeError(
                f"Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: '{code.co_filename}', "
                f"function name: '{code.co_name}', line number: {code.co_firstlineno}" + "".join(failed)
            )
        if RULES.disable:
            return False
        if _stance == "eager_then_compile":
            count = self._count(frame)
            met, count.met = count.met, True
            return met
        return _stance == "default"

    def forget(self) -> None:
        """Remove all captures. Takes no lock, because the garbage collector may call it at any time."""
        for code in self._codes.take():
            for entry in cache_entries(code):
                if entry.owner is self:
                    remove_entry(code, entry)
        self._counts.clear()

    @compile_stage("dynamo")
    def _new_entry(self, frame: Any, own: list[CacheEntry], values: dict) -> GuardedCode | bool | None:
        """Find a kept capture for a frame, or capture it. Returns what the frame hook runs."""
        code = frame.f_code
        backend, log = self.begin(code)
        count = self._count(frame)
        _captured.add(code)
        self._codes.add(code)
        if own:
            failed = [entry.guarded_code.guards.explain(values) for entry in own]
            if RULES.error_on_recompile:
                raise RecompileError(f"{_describe_code(code)} would be captured again: " + "; ".join(failed))
            log("recompiles", lambda: f"{_describe_code(code)} is captured again: " + "; ".join(failed), lambda: failed)
            if count.captures == self.limit():
                count.captures += 1
                limited = (
                    f"{_describe_code(code)} was compiled {self.limit()} times, the limit (RUSHLIGHT_RECOMPILE_LIMIT), and now "
                    f"runs in eager where no guard holds"
                )
                log("graph_breaks", lambda: limited)
                warnings.warn(f"compile: {limited}. The last guard that failed: {failed[0]}", stacklevel=3)
                return None
        count.captures += 1
        counters["frames"]["total"] += 1
        if not RULES.automatic_dynamic_shapes:
            count.history = History()
        with _gc_paused():
            kept = _run_or_warn(code, lambda: self.kept(frame)) if count.captures == 1 else None
            found = None if kept is None else _run_or_warn(code, lambda: kept.find(count.history))
            if found is None:
                found = self._capture(frame, backend, log)
                if kept is not None and isinstance(found, GuardedCode):
                    _run_or_warn(code, lambda: kept.keep(count.history, found))
        if isinstance(found, GuardedCode):
            counters["frames"]["ok"] += 1
            found.followed = None
            found.guards.when_an_object_dies(functools.partial(_remove, weakref.ref(code), weakref.ref(found)))
            self.finished(frame, found)
            log("guards", found.guards.text, lambda: found)
            log("bytecode", found.text, lambda: found)
            if found.break_reason is not None:
                counters["graph_break"][found.break_reason.reason] += 1
                log("graph_breaks", lambda: found.break_reason.text(), lambda: found.break_reason)
        return found

    def _count(self, frame: Any) -> _Count:
        """Return the record of how often a frame was captured, for its module if it is a method."""
        code, receiver = frame.f_code, frame.f_locals.get("self")
        subject = receiver if isinstance(receiver, Module) else code
        count = self._counts.get((id(code), id(subject)))
        # Start a new record if this one is from before a reset, or belongs to a dead object with the same id.
        if count is None or count.resets != _resets or count.code() is not code or count.receiver() is not subject:
            count = self._counts[id(code), id(subject)] = _Count(weakref.ref(code), weakref.ref(subject))
        return count

    @compile_stage("bytecode_tracing")
    def _capture(self, frame: Any, backend: Backend, log: Log) -> GuardedCode | bool | None:
        def when_fixed(failure: Exception) -> None:
            what = f"{_describe_code(frame.f_code)} is captured with fixed sizes, because with open ones that failed: {failure}"
            log("recompiles", lambda: what)

        def when_eager(reason: GraphBreak) -> None:
            log("graph_breaks", lambda: f"{_describe_code(frame.f_code)} runs in eager: {reason.text()}", lambda: reason)

        try:
            history = self._count(frame).history
            sizes = functools.partial(OpenSizes, self.is_dynamic(), history)
            made = capture.capture_frame(
                frame, backend, self.fullgraph, open_sizes=sizes, when_fixed=when_fixed, when_eager=when_eager
            )
            return made or False
        except Raised as error:
            what = f"{_describe_code(frame.f_code)} runs in eager this time, because it raises: {error}"
            log("graph_breaks", lambda: what)
            return None  # eager execution raises the program's exception
        except BackendCompilerFailed as error:
            log("graph_breaks", functools.partial(str, error))
            if self.fullgraph or not RULES.suppress_errors:
                raise
            warnings.warn(f"compile: {_describe_code(frame.f_code)} runs in eager, because {error}", stacklevel=4)
            return False
        except (Unsupported, ConstraintViolationError) as error:
            reason = error.__context__
            log("graph_breaks", functools.partial(str, error), lambda: reason)
            raise
        except RecursionError:
            if self.fullgraph:
                raise
            warnings.warn(
                f"compile: {_describe_code(frame.f_code)} runs in eager, because its functions call one another more deeply "
                f"than Python's recursion limit of {sys.getrecursionlimit()} allows a capture; sys.setrecursionlimit raises it",
                stacklevel=4,
            )
            return False
        except Exception as error:
            if self.fullgraph:
                raise
            _report(f"capturing {_describe_code(frame.f_code)} failed, so it runs in eager", error)
            return False


def _run_or_warn(code: types.CodeType, step: Callable[[], T]) -> T | None:
    """Run a step that finds or stores a kept capture. If it fails, warn and return None."""
    try:
        return step()
    except Exception as error:
        _report(f"a kept capture of {_describe_code(code)} could not be found or made", error)
        return None


def _report(what: str, error: Exception) -> None:
    """Warn about an internal error."""
    warnings.warn(
        f"compile: {what}: {type(error).__name__}: {error}. This is an error of Rushlight; please report it with the function.",
        stacklevel=5,
    )


@contextlib.contextmanager
def _gc_paused() -> Iterator[None]:
    """Disable the garbage collector during a capture: a capture makes many objects that stay, and each collection would
    traverse the program's whole heap. The caller holds the lock."""
    global _paused
    searching = gc.isenabled()
    _paused = _paused or searching
    gc.disable()
    try:
        yield
    finally:
        if searching:
            _resume_gc()


def _resume_gc() -> None:
    """Enable the garbage collector again."""
    global _paused
    if _paused:
        gc.enable()
    _paused = False


def _reset_after_fork() -> None:
    """Reset the lock and the garbage collector after a fork: if another thread was capturing, it does not exist in the
    child."""
    if not _lock._is_owned():
        _lock._at_fork_reinit()
        _resume_gc()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


class _Count:
    """The number of captures of a code object and the sizes they met. Methods of modules are counted per module."""

    def __init__(self, code: weakref.ref, receiver: weakref.ref) -> None:
        self.code = code
        self.receiver = receiver
        self.captures = 0
        self.resets = _resets
        self.met = False  # True after the frame's first call under the stance "eager_then_compile"
        self.history = History()


def _remove(code_reference: weakref.ref, found_reference: weakref.ref, entries=cache_entries, remove=remove_entry) -> None:
    """Remove an entry that cannot hold again, because an object its guards refer to is gone. The default arguments keep the
    functions reachable when this runs at interpreter shutdown."""
    code, found = code_reference(), found_reference()
    for entry in entries(code) if code is not None else []:
        if entry.guarded_code is found:
            remove(code, entry)


def _no_log(stage: str, text: Callable[[], str], subject: Callable[[], object] | None = None, title: str = "") -> None:
    """Return the default log: discards the stages."""


STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile")


def stance() -> str:
    """Return the current stance of compiled functions, one of STANCES."""
    return _stance


def set_stance(name: str) -> None:
    """Set the stance of compiled functions in all threads."""
    global _stance
    _stance = name
    force_eager(name == "force_eager")


def _has_tensors(frame: Any) -> bool:
    return any(isinstance(leaf, Tensor | Module) for leaf in tree_flatten(list(frame.f_locals.values()))[0])


def _describe_code(code: types.CodeType) -> str:
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def _values_of(frame: Any) -> dict[str, Any]:
    """Return the values that a frame's guards test, in the order of the guard function's parameters."""
    return {**frame.f_locals, "__globals": frame.f_globals, "__closure": frame.closure or None}


def reset() -> None:
    """Forget all captures, and how often frames were captured."""
    global _resets
    with _lock:
        _resets += 1
        for code in _captured.take():
            reset_code(code)


def code_of(function: Callable | types.CodeType) -> types.CodeType:
    """Return the code that runs when a function is called. For a compiled function this is the code that gets captured."""
    if isinstance(function, types.CodeType):
        return function
    if is_compiled_wrapper(function):
        function = function._rushlight_followed
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        raise TypeError(f"expected a function written in Python or its code, got {type(function).__name__}")
    return code


def debug_cache_entries(function: Callable | types.CodeType) -> list[CacheEntry]:
    """Return the cache entries of a function, the latest first. A compiled function lists only its own. TypeError for other
    callables."""
    owner = function._rushlight_callback if is_compiled_wrapper(function) else None
    entries = [entry for entry in cache_entries(code_of(function)) if entry.check_fn is not None]
    return [entry for entry in entries if owner is None or entry.owner is owner]
