"""What goes wrong in the jit, each error with the user's source."""

from __future__ import annotations

from rushlight.jit.source import SourceRange


class ErrorReport(RuntimeError):
    """A program that does not compile: what is wrong, and the source with the place marked."""

    def __init__(self, source_range: SourceRange, message: str):
        self.source_range = source_range
        self.message = message
        super().__init__(f"\n{message}:\n{source_range.highlight()}")


class FrontendError(ErrorReport):
    """Python that has no tree view; the message starts at once, as the frontend's do."""

    def __init__(self, source_range: SourceRange, message: str):
        super().__init__(source_range, message)
        self.args = (f"{message}:\n{source_range.highlight().rstrip()}",)


class NotSupportedError(FrontendError):
    """Python that TorchScript does not have."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of Python syntax that TorchScript does not have."""


class ScriptWarning(Warning):
    """Something about a program or module that is scripted, which may not be as it was meant."""


class JitException(RuntimeError):
    """An exception that scripted code raised: `python_class` is the name of its type there."""

    def __init__(self, message: str, python_class: str = ""):
        super().__init__(message)
        self.python_class = python_class
