"""Short messages between ranks besides the operations: questions what a rank is doing, answers, and goodbyes.

The background thread answers, so that a rank tells what it does even while its program calculates. Who doesn't answer is
stopped, or holds the interpreter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.distributed.engine.operation import Report

_QUESTION, _ANSWER, _GOODBYE = 1, 2, 3


class Notes:
    """The notes of one rank over a communicator of their own. `report` says what this rank is doing."""

    def __init__(self, comm: Any, report: Callable[[], Report]) -> None:
        self.comm, self._report = comm, report
        self._sends: list[Any] = []
        self._answers: dict[int, Report] = {}
        self.left: dict[int, dict[str, int]] = {}
        """The ranks that have left the program: the number of their last collective by group."""

    def serve(self) -> None:
        """Answer and remember what has arrived. Called by one thread at a time."""
        while (message := self.comm.improbe()) is not None:
            kind, sender, content = message.recv()
            if kind == _QUESTION:
                self._send((_ANSWER, self.comm.rank, self._report()), sender)
            elif kind == _ANSWER:
                self._answers[sender] = content
            else:
                self.left[sender] = content
        self._sends = [request for request in self._sends if not request.Test()]

    def ask(self, ranks: Sequence[int], seconds: float) -> dict[int, Report]:
        """Return what ranks are doing; those that don't answer in time are left out."""
        self._answers.clear()
        for rank in ranks:
            self._send((_QUESTION, self.comm.rank, None), rank)
        end = time.monotonic() + seconds
        while len(self._answers) < len(ranks) and time.monotonic() < end:
            time.sleep(0.01)
        return dict(self._answers)

    def say_goodbye(self, last: dict[str, int]) -> None:
        """Tell all ranks that this one has left the program, with the number of its last collective by group."""
        for rank in range(self.comm.size):
            if rank != self.comm.rank:
                self._send((_GOODBYE, self.comm.rank, last), rank)

    def _send(self, note: tuple[int, int, Any], rank: int) -> None:
        self._sends.append(self.comm.isend(note, rank))
