"""The thread that moves outstanding operations on while the program calculates, and does small tasks at intervals.

MPI's nonblocking operations advance only inside calls of MPI, so somebody has to test them. Without operations the thread
sleeps and wakes for its tasks alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

_TASK_PERIOD = 0.1  # seconds between two runs of the tasks
_SHORTEST_PAUSE, _LONGEST_PAUSE = 50e-6, 500e-6  # seconds between two tests of what is outstanding


class Advancing(Protocol):
    """An operation that is outstanding."""

    def advance(self, seconds: float, wait: bool = True) -> bool:
        """Test for so long; return whether it is complete. Without `wait`, False while another thread tests."""


class Progress:
    """The background thread; it starts with the first use."""

    def __init__(self) -> None:
        self._works: list[Advancing] = []
        self._tasks: list[Callable[[], None]] = []
        self._wake = threading.Event()
        self._stopping = False
        self._pause = _SHORTEST_PAUSE
        self._thread: threading.Thread | None = None

    def watch(self, work: Advancing) -> None:
        """Advance an operation until it is complete."""
        self._works.append(work)
        self._pause = _SHORTEST_PAUSE
        self._start()
        self._wake.set()

    def outstanding(self) -> list[Advancing]:
        """Return the operations that are not complete."""
        return list(self._works)

    def repeat(self, task: Callable[[], None]) -> None:
        """Run a task ten times a second."""
        self._tasks.append(task)
        self._start()

    def stop(self) -> None:
        """End the thread. A later use starts it again."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread, self._stopping = None, False

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rushlight-distributed", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        due = 0.0
        while not self._stopping:
            self._wake.clear()
            if self._works:
                self._advance()
            else:
                self._wake.wait(_TASK_PERIOD)
            if time.monotonic() >= due:
                for task in self._tasks:
                    task()
                due = time.monotonic() + _TASK_PERIOD

    def _advance(self) -> None:
        """Test all operations once, then pause: the longer, the longer nothing has happened."""
        works = list(self._works)
        complete = [work for work in works if work.advance(0, wait=False)]
        for work in complete:
            self._works.remove(work)
        self._pause = _SHORTEST_PAUSE if complete else min(self._pause * 1.2, _LONGEST_PAUSE)
        time.sleep(self._pause)
