"""`trace_dependencies`: the modules whose code a call runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

__all__ = ["trace_dependencies"]


def trace_dependencies(callable: Callable[..., Any], inputs: Iterable[tuple[Any, ...]]) -> list[str]:
    """Return the modules whose functions run when a function is called with each of some tuples of arguments, besides
    `__main__`.

    Only functions written in Python are seen.
    """
    names: dict[str, None] = {}

    def record(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_globals.get("__name__")
        if event == "call" and name not in (None, "__main__", __name__):
            names[name] = None

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        for arguments in inputs:
            callable(*arguments)
    finally:
        sys.setprofile(before)
    return list(names)
