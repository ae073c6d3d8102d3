"""The ambient state of a thread: dispatch keys to include and exclude, active modes, and the grad mode."""

from __future__ import annotations

import threading

from rushlight.core.dispatch_key import DispatchKey, bit


class ThreadState(threading.local):
    """One record per thread. `include` and `exclude` are key-set masks; `modes` is the stack of dispatch modes."""

    def __init__(self):
        self.include = bit(DispatchKey.ADInplaceOrView)
        self.exclude = 0
        self.modes = []
        self.grad_enabled = True
        self.inference = False


state = ThreadState()


class IncludeKeys:
    """Context manager that adds the keys of the mask `bits` to every dispatch of this thread."""

    __slots__ = ("bits", "previous")

    def __init__(self, bits: int):
        self.bits = bits

    def __enter__(self):
        self.previous = state.include
        state.include = self.previous | self.bits

    def __exit__(self, *error):
        state.include = self.previous


class ExcludeKeys:
    """Context manager that hides the keys of the mask `bits` from every dispatch of this thread."""

    __slots__ = ("bits", "previous")

    def __init__(self, bits: int):
        self.bits = bits

    def __enter__(self):
        self.previous = state.exclude
        state.exclude = self.previous | self.bits

    def __exit__(self, *error):
        state.exclude = self.previous
