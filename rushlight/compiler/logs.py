"""Watching compilation: the stages of each compilation are printed, dumped and handed to listeners from one record.

In: stages, as a name, a text and the object that the text describes. Out: prints of the stages that RUSHLIGHT_LOGS names,
files of all of them under RUSHLIGHT_DUMP, calls of listeners.
"""

from __future__ import annotations

import itertools
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rushlight.compiler.settings import Settings

if TYPE_CHECKING:
    from types import CodeType

    from rushlight.fx.graph_module import GraphModule
    from rushlight.jit.ir.graph import Graph as ScriptGraph

_SUFFIX = {
    "captured": "py", "passes": "py", "graph": "py", "guards": "py", "bytecode": "py", "joint": "py", "partition": "py",
    "code": "cpp", "module": "py",
}  # fmt: skip
_numbers = itertools.count()
_lock = threading.Lock()
_listeners: tuple[Listener, ...] = ()


@dataclass(frozen=True)
class StageRecord:
    """What one stage of a compilation made: its text, and the object that this describes (a GraphModule, a GuardedCode, …).

    `title` says which of several of one name it is: after which pass, of which part. `at` is when it was made, by
    `time.perf_counter`, before the text was.
    """

    stage: str
    title: str
    text: str
    subject: object
    at: float


class Listener(Protocol):
    """Somebody who is told of all stages of all compilations."""

    def heard(self, log: StageLog, record: StageRecord) -> None:
        """A stage has made something. The subject may change later."""


def listen(listener: Listener) -> None:
    """Tell a listener of all stages from now on. What was kept by other processes is compiled anew meanwhile."""
    global _listeners
    with _lock:
        _listeners = (*_listeners, listener)


def leave(listener: Listener) -> None:
    """Tell a listener nothing more."""
    global _listeners
    with _lock:
        _listeners = tuple(each for each in _listeners if each is not listener)


def is_heard() -> bool:
    """Whether somebody listens."""
    return bool(_listeners)


class StageLog:
    """Receives the stages of one compilation; texts are made only when someone reads them. `source` is what is compiled:
    the code of a function, or a graph of TorchScript; `began` is when that began, by `time.perf_counter`."""

    def __init__(self, settings: Settings, name: str, source: CodeType | ScriptGraph | None = None):
        self.settings = settings
        self.name = name
        self.source = source
        self.began = time.perf_counter()
        self.folder: Path | None = None
        self._steps = itertools.count()

    def __call__(
        self, stage: str, text: Callable[[], str], subject: Callable[[], object] | None = None, title: str = ""
    ) -> None:  # fmt: skip
        """Print and dump one stage as the settings say, and tell the listeners."""
        listeners, shown = _listeners, stage in self.settings.logs
        if not self.wants(stage):
            return
        at = time.perf_counter()
        content = text()
        if shown:
            print(f"--- {f'{stage}, {title}' if title else stage}: {self.name} ---\n{content}\n", file=sys.stderr)
        if self.settings.dump:
            try:
                self._write(stage, content)
            except OSError as error:
                warnings.warn(f"compile: a stage is not written to RUSHLIGHT_DUMP, because {error}", stacklevel=2)
        if listeners:
            record = StageRecord(stage, title, content, subject and subject(), at)
            for listener in listeners:
                try:
                    listener.heard(self, record)
                except Exception as error:  # the program goes on, whatever is wrong with who listens
                    leave(listener)
                    text = f"{type(error).__name__}: {error}"
                    warnings.warn(f"compile: a listener failed at the stage {stage} of {self.name}: {text}", stacklevel=2)

    def graph(self, stage: str, module: GraphModule, title: str = "") -> None:
        """A stage that made a graph."""
        self(stage, lambda: module.print_readable(print_output=False), lambda: module, title)

    def wants(self, stage: str) -> bool:
        """Whether somebody reads a stage."""
        return bool(_listeners or self.settings.dump) or stage in self.settings.logs

    def _write(self, stage: str, content: str) -> None:
        if self.folder is None:
            safe = re.sub(r"[^\w.-]", "_", self.name)
            self.folder = Path(self.settings.dump) / f"{next(_numbers):03d}_{safe}"
            self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{next(self._steps):02d}_{stage}.{_SUFFIX.get(stage, 'txt')}"
        path.write_text(content + "\n")
