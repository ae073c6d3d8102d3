"""Logs of passes: the changes of each pass, with the responsible source line.

In: `RUSHLIGHT_JIT_LOG_LEVEL`, or torch's `PYTORCH_JIT_LOG_LEVEL`: names of pass files with colons between them.
`dead_code_elimination` prints graphs before and after the pass, `>dead_code_elimination` also each change,
`>>dead_code_elimination` also each candidate. `RUSHLIGHT_JIT_OPT_LIMIT` (`PYTORCH_JIT_OPT_LIMIT`), as `peephole=12:inline=3`,
limits the changes of a pass in this process, to find by bisection the first one that breaks a program. Out: lines on stderr,
each as `[UPDATE dead_code_elimination.py:97] text`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

DUMP, UPDATE, DEBUG = range(3)
_NAMES = ("DUMP", "UPDATE", "DEBUG")
_lock = threading.Lock()


class LogSettings:
    """The log level of each pass, and the limits of changes."""

    def __init__(self, levels: str = "", limits: str = ""):
        self.levels = _parse_levels(levels)
        self.limits = _parse_limits(limits)
        self.counts: dict[str, int] = {}
        self.stream: TextIO | None = None


def _parse_levels(text: str) -> dict[str, int]:
    found = {}
    for part in filter(None, (part.strip() for part in text.split(":"))):
        name = part.lstrip(">")
        found[_file_stem(name)] = min(len(part) - len(name), DEBUG)
    return found


def _parse_limits(text: str) -> dict[str, int]:
    found = {}
    for part in filter(None, (part.strip() for part in text.split(":"))):
        name, equals, number = part.partition("=")
        if not equals or not number.strip().isdecimal():
            raise ValueError(f"RUSHLIGHT_JIT_OPT_LIMIT holds {part!r}; a limit is a pass and a count, as in 'peephole=12'")
        found[_file_stem(name)] = int(number)
    return found


def _file_stem(name: str) -> str:
    """Return a file's name without its extension; a log line's file name works in limits and levels, too."""
    return name.strip().removesuffix(".py").removesuffix(".cpp")


def _from(environment: Mapping[str, str]) -> LogSettings:
    def option(name: str) -> str:
        return environment.get(f"RUSHLIGHT_JIT_{name}") or environment.get(f"PYTORCH_JIT_{name}", "")

    return LogSettings(option("LOG_LEVEL"), option("OPT_LIMIT"))


_settings = _from(os.environ)


def set_logging_option(levels: str, limits: str = "", stream: TextIO | None = None) -> None:
    """Override the environment's levels and limits, in the same form; `stream` receives the lines (None: stderr)."""
    global _settings
    made = LogSettings(levels, limits)
    made.stream = stream
    with _lock:
        _settings = made


class PassLog:
    """The log of one pass's file. A pass asks `permits` before each change."""

    def __init__(self, file: str):
        self.name = Path(file).stem

    def is_on(self, level: int) -> bool:
        """Return whether lines of a level are printed."""
        return _settings.levels.get(self.name, -1) >= level

    def permits(self, text: str, *items: object) -> bool:
        """Log a change that is about to happen (`text` is formatted with the items); returns whether the limit allows it."""
        settings = _settings
        limit = settings.limits.get(self.name)
        if limit is not None:
            with _lock:
                count = settings.counts.get(self.name, 0)
                if count >= limit:
                    return False
                settings.counts[self.name] = count + 1
        if self.is_on(UPDATE):
            self._write(UPDATE, text.format(*items), sys._getframe(1).f_lineno)
        return True

    def debug(self, text: str, *items: object) -> None:
        """Log what the pass examines."""
        if self.is_on(DEBUG):
            self._write(DEBUG, text.format(*items), sys._getframe(1).f_lineno)

    def dump(self, heading: str, graph: object, line: int) -> None:
        """Print a graph."""
        if self.is_on(DUMP):
            self._write(DUMP, f"{heading}\n{graph}", line)

    def _write(self, level: int, text: str, line: int) -> None:
        prefix = f"[{_NAMES[level]} {self.name}.py:{line}] "
        shown = "".join(f"{prefix}{each}\n" for each in text.splitlines())
        (_settings.stream or sys.stderr).write(shown)
