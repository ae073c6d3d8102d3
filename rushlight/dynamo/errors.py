"""How following a frame can end early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceback import FrameSummary


class GraphBreak(Exception):
    """The program does what cannot be captured; Python has to run it. `hint` says what a user may do about it.

    `user_stack` are the lines of the program, outermost first, once they are known.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.user_stack: list[FrameSummary] = []

    def forget_frames(self) -> None:
        """Let go of the frames and exceptions through which this one came: they hold the program's values."""
        self.__traceback__ = self.__context__ = self.__cause__ = None

    def text(self) -> str:
        """The reason, the program's lines and the hint."""
        lines = [f"  {line.filename}:{line.lineno} in {line.name}: {line.line}" for line in self.user_stack]
        hint = f"\nHint: {self.hint}" if self.hint else ""
        return f"{self.reason}\nfrom user code:\n" + "\n".join(lines) + hint


class FrameNeeded(GraphBreak):
    """The program looks at its own frame (`locals()`), so that only the frame itself can run it."""


class Restart(Exception):
    """What was learned makes following the frame worth while once more, from the start."""


class BackendCompilerFailed(RuntimeError):
    """The backend raised an error, which is the cause of this one."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"backend={name!r} raised:\n{type(error).__name__}: {error}")
        self.inner_exception = error


class RecompileError(RuntimeError):
    """A frame would have been captured again, which the program forbids."""
