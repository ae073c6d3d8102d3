"""Logs: prints, dumps and listeners for the stages of each compilation.

In: stages, as a name, a text and the described object. Out: printed stages that RUSHLIGHT_LOGS names, files of all stages under
RUSHLIGHT_DUMP, and calls of listeners.
"""

from __future__ import annotations

import itertools
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rushlight.compiler.settings import Settings

if TYPE_CHECKING:
    from types import CodeType

    from rushlight.fx.graph_module import GraphModule
    from rushlight.jit.ir.graph import Graph as ScriptGraph

T = TypeVar("T")

_SUFFIX = {
    "captured": "py", "passes": "py", "graph": "py", "guards": "py", "bytecode": "py", "joint": "py", "partition": "py",
    "code": "cpp", "module": "py",
}  # fmt: skip
_numbers = itertools.count()
_lock = threading.Lock()
_listeners: tuple[Listener, ...] = ()


@dataclass(frozen=True)
class StageRecord:
    """The result of one stage: its text, and the described object (a GraphModule, a GuardedCode, …).

    `title` distinguishes results of the same stage: the pass, or the part. `at` is the time by `time.perf_counter`, before the
    text was made.
    """

    stage: str
    title: str
    text: str
    subject: object
    at: float


class Listener(Protocol):
    """Receives all stages of all compilations."""

    def heard(self, log: StageLog, record: StageRecord) -> None:
        """Receive a stage. The subject may change later."""

    def interpreting(self, log: StageLog) -> AbstractContextManager:
        """Return a context in which a captured graph runs that has no native code."""


def listen(listener: Listener) -> None:
    """Register a listener. While there is one, kept plans and captures are not used, so that compilations are complete."""
    global _listeners
    with _lock:
        _listeners = (*_listeners, listener)


def leave(listener: Listener) -> None:
    """Unregister a listener."""
    global _listeners
    with _lock:
        _listeners = tuple(each for each in _listeners if each is not listener)


def is_heard() -> bool:
    """Return whether any listener is registered."""
    return bool(_listeners)


def heard_run(log: StageLog, run: Callable[..., T]) -> Callable[..., T]:
    """Return a captured graph without native code, as a function whose calls the listeners hear."""

    def heard(*inputs: Any) -> T:
        if not _listeners:
            return run(*inputs)
        with ExitStack() as stack:
            for listener in _listeners:
                stack.enter_context(listener.interpreting(log))
            return run(*inputs)

    return heard


class StageLog:
    """Receives the stages of one compilation; texts are only made if someone reads them. `source` is the compiled code object
    or TorchScript graph; `began` is the start time by `time.perf_counter`."""

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
        """Print and dump a stage as the settings say, and call the listeners."""
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
                except Exception as error:  # a failing listener must not break the program
                    leave(listener)
                    text = f"{type(error).__name__}: {error}"
                    warnings.warn(f"compile: a listener failed at the stage {stage} of {self.name}: {text}", stacklevel=2)

    def graph(self, stage: str, module: GraphModule, title: str = "") -> None:
        """Log a stage that made a graph."""
        self(stage, lambda: module.print_readable(print_output=False), lambda: module, title)

    def wants(self, stage: str) -> bool:
        """Return whether anyone reads a stage."""
        return bool(_listeners or self.settings.dump) or stage in self.settings.logs

    def _write(self, stage: str, content: str) -> None:
        """Write a stage to a file in the dump folder of this compilation."""
        if self.folder is None:
            safe = re.sub(r"[^\w.-]", "_", self.name)
            self.folder = Path(self.settings.dump) / f"{next(_numbers):03d}_{safe}"
            self.folder.mkdir(parents=True, exist_ok=True)
        suffix = "py" if stage == "code" and self.settings.target != "cpp" else _SUFFIX.get(stage, "txt")
        path = self.folder / f"{next(self._steps):02d}_{stage}.{suffix}"
        path.write_text(content + "\n")
