"""The exceptions that end the following of a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceback import FrameSummary


class GraphBreak(Exception):
    """The program does something that cannot be captured, so Python must run it. `hint` tells the user what to do about it.

    `user_stack` holds the program's lines, outermost first, once they are known.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.user_stack: list[FrameSummary] = []

    def forget_frames(self) -> None:
        """Drop the traceback and chained exceptions, because their frames hold the program's values."""
        self.__traceback__ = self.__context__ = self.__cause__ = None

    def text(self) -> str:
        """Return the reason, the program's lines and the hint."""
        lines = [f"  {line.filename}:{line.lineno} in {line.name}: {line.line}" for line in self.user_stack]
        hint = f"\nHint: {self.hint}" if self.hint else ""
        return f"{self.reason}\nfrom user code:\n" + "\n".join(lines) + hint


class FrameNeeded(GraphBreak):
    """The program inspects its own frame (`locals()`), so only the real frame can run it."""


class Restart(Exception):
    """Follow the frame again from the start: this attempt learned something that changes the capture."""


class BackendCompilerFailed(RuntimeError):
    """The backend raised an error; this error's cause is that one."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"backend={name!r} raised:\n{type(error).__name__}: {error}")
        self.inner_exception = error


class RecompileError(RuntimeError):
    """A frame would be captured again although the program forbids it."""
