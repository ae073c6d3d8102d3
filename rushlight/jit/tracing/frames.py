"""Python's stack frames: find the line of the user's program, or of the library's modules, behind an operator call."""

from __future__ import annotations

import linecache
import os
from functools import lru_cache
from types import FrameType

from rushlight.jit.source import NO_SOURCE, Source, SourceRange

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_MACHINERY = tuple(f"{_PACKAGE}{name}{os.sep}" for name in ("jit", "ops", "core", "autograd", "amp", "explorer"))
_TRACER = os.path.join(_PACKAGE, "jit", "tracing", "trace.py")
_HOOKS = os.path.join(_PACKAGE, "nn", "modules", "module_hooks.py")


def is_library(frame: FrameType) -> bool:
    """Return whether a frame runs the library's own code."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame outside the library."""
    while frame is not None and is_library(frame):
        frame = frame.f_back
    return frame


def calling_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame outside of the dispatching code: the user's, or that of a function or module of
    `rushlight.nn`."""
    while frame is not None:
        path = frame.f_code.co_filename
        if not (path.startswith(_MACHINERY) or path == _HOOKS):
            return frame
        frame = frame.f_back
    return None


def range_of(frame: FrameType | None) -> SourceRange:
    """Return a frame's line as a source range, followed by the user's lines up to the call of the tracer."""
    return NO_SOURCE if frame is None else _range(frame.f_code.co_filename, frame.f_lineno, _callers(frame.f_back))


def _callers(frame: FrameType | None) -> tuple[tuple[str, int, str], ...]:
    """Return (file, line, function) of the user's frames, innermost first, up to the call of the tracer."""
    found = []
    while frame is not None and not frame.f_code.co_filename.startswith(_TRACER):
        if not is_library(frame):
            found.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(found)


@lru_cache(maxsize=4096)
def _range(path: str, line: int, callers: tuple[tuple[str, int, str], ...]) -> SourceRange:
    text = linecache.getline(path, line).rstrip("\n")
    following = "".join(f"\n{file}({number}): {name}" for file, number, name in callers)
    return SourceRange(Source(text + following, path, line - 1), 0, len(text))


def name_in(frame: FrameType | None, impl: object) -> str | None:
    """Return the variable name of a tensor in a frame; None if it has none."""
    if frame is None:
        return None
    for name, value in frame.f_locals.items():
        if getattr(value, "_impl", None) is impl and name != "self" and name.isidentifier() and name.isascii():
            return name
    return None
