"""Errors of the jit, each with the user's source."""

from __future__ import annotations

from rushlight.jit.source import SourceRange


class ErrorReport(RuntimeError):
    """A compilation error: the message, and the source with the position marked."""

    def __init__(self, source_range: SourceRange, message: str):
        self.source_range = source_range
        self.message = message
        self._failed: str | None = None
        super().__init__(f"\n{message}:\n{source_range.highlight()}")

    def leave(self, name: str) -> None:
        """Record that the error ends the compilation of a function or class, whose caller `add_call` adds."""
        self._failed = self._failed or name

    def add_call(self, caller: str, where: SourceRange) -> None:
        """Add to the message the call for which the function or class that failed was being compiled."""
        if self._failed is None:
            return
        said = f"'{self._failed}' is being compiled since it was called from '{caller}'\n{where.highlight()}"
        self.args = (f"{self.args[0].rstrip()}\n{said}",)
        self._failed = None


class FrontendError(ErrorReport):
    """Python syntax without a tree view; the message starts without a prefix, as the frontend's do."""

    def __init__(self, source_range: SourceRange, message: str):
        super().__init__(source_range, message)
        self.args = (f"{message}:\n{source_range.highlight().rstrip()}",)


class NotSupportedError(FrontendError):
    """A Python feature that TorchScript lacks."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of Python syntax that TorchScript lacks."""


class ScriptWarning(Warning):
    """A warning about a scripted program or module that may not do what was intended."""


class JitException(RuntimeError):
    """An exception that scripted code raised: `python_class` is the name of its type there."""

    def __init__(self, message: str, python_class: str = ""):
        super().__init__(message)
        self.python_class = python_class
