"""`torch._dynamo.types`: what a callback of the frame hook is given, and what it returns."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Protocol

from rushlight._C import CacheEntry
from rushlight._guards import CompileId
from rushlight.dynamo.instructions import parameter_names

__all__ = [
    "CacheEntry", "CompileId", "DynamoCallback", "DynamoCallbackFn", "DynamoFrameType", "FrameState", "GuardFn", "GuardedCode",
]  # fmt: skip

FrameState = dict[Any, Any]
"""A dict that belongs to a code object, for the callback's own use."""
GuardFn = Callable[[dict[str, Any]], Any]
"""A guard: called with the parameters of a function by name, true where the cached code may run."""


class DynamoFrameType(Protocol):
    """A call that has not begun, as callbacks see it."""

    @property
    def f_code(self) -> types.CodeType:
        """Return the code that is about to run."""

    @property
    def f_locals(self) -> dict[str, Any]:
        """Return the arguments by name."""

    @property
    def f_globals(self) -> dict[str, Any]:
        """Return the function's globals."""


class GuardedCode:
    """The code that runs in a function's place, with the function's own globals, wherever `check_fn` holds.

    `check_fn` (`guard_manager` in newer versions of PyTorch) is called with the parameters by name, as one dict. `code` has to
    take what the function's own code takes. The other arguments are kept for those who look.
    """

    globals = None  # the function's globals

    def __init__(
        self, code: types.CodeType, check_fn: GuardFn | None = None, compile_id: CompileId | None = None,
        trace_annotation: str = "Unknown", *, guard_manager: GuardFn | None = None,
    ) -> None:  # fmt: skip
        guard = check_fn if guard_manager is None else guard_manager
        if not callable(guard):
            raise TypeError(f"GuardedCode needs a check_fn that can be called, got {type(guard).__name__}")
        self.code = code
        self.guard_manager = guard
        self.compile_id = compile_id
        self.trace_annotation = trace_annotation
        names = parameter_names(code)
        # Values after the named ones (globals and closure) are ignored.
        self.check_fn = lambda *values: guard(dict(zip(names, values, strict=False)))


class DynamoCallbackFn(Protocol):
    """A callback of the frame hook."""

    def __call__(
        self, frame: DynamoFrameType, cache_entry: CacheEntry | None, frame_state: FrameState
    ) -> GuardedCode | bool | None:
        """Return what runs instead; None for the function itself, this time, False for it from now on."""


DynamoCallback = DynamoCallbackFn | bool | None
