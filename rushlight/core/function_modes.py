"""The stack of function modes of a thread: objects that see every call of a public function or method first.

`torch.overrides.TorchFunctionMode` pushes and pops them. Without a mode nothing here runs: functions and operators look at a
flag (`ThreadRecord.asks_function_modes` in C, `entered` in Python), and Tensor's other attributes (`size`, `shape`, `item`) are
replaced on the class only while some thread has a mode.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.core.thread_state import state

entered = 0
"""The number of modes on the stacks of all threads. Hot Python code checks this first."""

# Callbacks for the moment when the process's first function mode is entered, and when its last one is left.
_installers: list[Callable[[], None]] = []
_removers: list[Callable[[], None]] = []
_lock = threading.Lock()


class _Stack(threading.local):
    modes: tuple[Any, ...] = ()
    disabled = False


_stack = _Stack()


def _set_modes(modes: tuple[Any, ...]) -> None:
    _stack.modes = modes
    state.asks_function_modes = bool(modes) and not _stack.disabled


def are_active() -> bool:
    """Return whether this thread has a mode that sees calls now."""
    return state.asks_function_modes


def are_suspended() -> bool:
    """Return whether this thread's modes are switched off for now."""
    return _stack.disabled


def stack() -> tuple[Any, ...]:
    """Return this thread's modes, outermost first."""
    return _stack.modes


def push(mode: Any) -> None:
    """Make `mode` the innermost one of this thread."""
    global entered
    with _lock:
        if not entered:
            for install in _installers:
                install()
        entered += 1
    _set_modes((*_stack.modes, mode))


def pop() -> Any:
    """Pop the innermost mode. RuntimeError where there is none."""
    global entered
    if not _stack.modes:
        raise RuntimeError("the stack of function modes is empty: a mode was left that was not entered")
    *outer, mode = _stack.modes
    _set_modes(tuple(outer))
    with _lock:
        entered -= 1
        if not entered:
            for remove in _removers:
                remove()
    return mode


@contextmanager
def innermost_popped() -> Iterator[Any]:
    """Return a context manager in which the innermost mode is popped; yields that mode."""
    before = _stack.modes
    _set_modes(before[:-1])
    try:
        yield before[-1]
    finally:
        _set_modes(before)


class Suspended:
    """A context in which this thread's modes see no calls."""

    def __enter__(self) -> None:
        self._before = _stack.disabled
        _stack.disabled = True
        state.asks_function_modes = False

    def __exit__(self, *error: object) -> None:
        _stack.disabled = self._before
        _set_modes(_stack.modes)


def when_entered(install: Callable[[], None], remove: Callable[[], None]) -> None:
    """Run `install` before the first mode of the process is active, and `remove` after the last one."""
    _installers.append(install)
    _removers.append(remove)
