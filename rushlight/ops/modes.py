"""Dispatch modes: objects that see every operator call of a thread below autograd, innermost first."""

from __future__ import annotations

from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.thread_state import state
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback

_PYTHON = bit(DispatchKey.Python)


class DispatchMode:
    """Base of modes. Subclasses define `__torch_dispatch__(op, types, args, kwargs)`; `with mode:` makes it active.

    While the handler runs, the mode itself is inactive, so operators called in it go to the next outer mode.
    """

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict):
        raise NotImplementedError

    def __enter__(self):
        state.modes.append(self)
        state.include |= _PYTHON
        return self

    def __exit__(self, *error):
        state.modes.pop()
        if not state.modes:
            state.include &= ~_PYTHON


class SuspendModes:
    """Context manager under which no dispatch mode of this thread is active."""

    def __enter__(self):
        self._modes, self._include = state.modes, state.include
        state.modes, state.include = [], state.include & ~_PYTHON

    def __exit__(self, *error):
        state.modes, state.include = self._modes, self._include


def _mode_kernel(op: OpOverload, below: int):
    def run(*args, **kwargs):
        modes, include = state.modes, state.include
        if not modes:
            return op.redispatch(below, *args, **kwargs)
        mode = modes[-1]
        state.modes = modes[:-1]
        if len(modes) == 1:
            state.include = include & ~_PYTHON
        try:
            return mode.__torch_dispatch__(op, (), args, kwargs)
        finally:
            state.modes, state.include = modes, include

    return run


register_fallback(DispatchKey.Python, Kernel(_mode_kernel, linked=True))
