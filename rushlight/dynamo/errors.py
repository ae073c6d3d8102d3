"""How following a frame can end early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Value


class GraphBreak(Exception):
    """The program does what cannot be captured; Python has to run it. `hint` says what a user may do about it."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class FrameNeeded(GraphBreak):
    """The program looks at its own frame (`locals()`), so that only the frame itself can run it."""


class Raised(Exception):
    """The followed program raised an exception, which a handler of its own may catch."""

    def __init__(self, value: Value) -> None:
        super().__init__(str(value))
        self.value = value
