"""Options: all that a compilation depends on besides the graph."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """`threads`: their number, None if each call chooses it. `debug`: build for a debugger. `autotune`: time several ways to
    run a template. `timed`: read the clock after each kernel."""

    threads: int | None
    debug: bool = False
    autotune: bool = False
    timed: bool = False
