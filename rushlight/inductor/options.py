"""What compilation depends on besides the graph."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """What compilation depends on besides the graph: the number of threads, None where each call says it, whether to build for
    a debugger, whether to time several ways to run a template, and whether the program looks at the clock after each kernel."""

    threads: int | None
    debug: bool = False
    autotune: bool = False
    timed: bool = False
