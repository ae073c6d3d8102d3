"""The passes by name: torch's (`_jit_pass_dce`), the pass's own (`EliminateDeadCode`), and that of its file.

In: functions that change a graph, marked with `graph_pass`. Out: `PASSES`, the table of `run_pass`. Each marked function logs
the graph before and after itself if its file's log is on.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from rushlight.jit.ir.handles import unwrapped
from rushlight.jit.passes.pass_log import PassLog

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
PASSES: dict[str, Callable] = {}
_lock = threading.Lock()


def graph_pass(*names: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Mark a function of a graph as a pass with these names; logs use the first one."""

    def mark(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        file, line = function.__code__.co_filename, function.__code__.co_firstlineno
        log = PassLog(file)

        @functools.wraps(function)
        def run(graph, *args, **kwargs):
            graph = unwrapped(graph)
            log.dump(f"Before {names[0]}:", graph, line)
            result = function(graph, *args, **kwargs)
            log.dump(f"After {names[0]}:", graph, line)
            return result

        with _lock:
            PASSES.setdefault(Path(file).stem, run)
            PASSES.update(dict.fromkeys((*names, function.__name__), run))
        return run

    return mark
