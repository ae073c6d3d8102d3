"""The output of ranks: each line with the number of its rank, and how the first that failed ended."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path
from typing import IO

from rushlight.distributed.launcher.start_rank import REPORT

_TAG = re.compile(r"^\[[^\]]*?,(\d+)\]<(?:stdout|stderr)>: ?")
_REPORT = re.compile(rf"{REPORT} (\d+) (exit|signal) (\d+)")


class Relay:
    """Copies what mpirun prints: lines of ranks under their numbers. It keeps the words of mpirun, and what is reported of a
    rank that failed."""

    def __init__(self, log_dir: str | None) -> None:
        self._folder = Path(log_dir) if log_dir else None
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._files: dict[str, IO[str]] = {}
        self._own: list[str] = []
        self._failure: tuple[str, str, str, int] | None = None
        self._lock = threading.Lock()

    def copy(self, source: IO[str], sink: IO[str]) -> None:
        """Copy until the end of the source."""
        for line in source:
            tag = _TAG.match(line)
            if tag is None:
                self._own.append(line)
            elif report := _REPORT.search(line):
                self._note(tag[1], report[1], report[2], int(report[3]))
                self._show(sink, tag[1], line[tag.end() : report.start()])
            else:
                self._show(sink, tag[1], line[tag.end() :])

    def _note(self, rank: str, process: str, how: str, number: int) -> None:
        if self._failure is None and number:
            self._failure = rank, process, how, number

    def _show(self, sink: IO[str], rank: str, text: str) -> None:
        if not text:
            return
        with self._lock:
            sink.write(f"[rank {rank}] {text}")
            sink.flush()
            if self._folder:
                self._file(rank).write(text)

    def _file(self, rank: str) -> IO[str]:
        if rank not in self._files:
            assert self._folder is not None
            self._files[rank] = open(self._folder / f"rank_{rank}.log", "w", buffering=1)  # noqa: SIM115  (closed by close)
        return self._files[rank]

    def close(self) -> None:
        """Close the files of ranks."""
        for file in self._files.values():
            file.close()

    def status(self, otherwise: int) -> int:
        """Return the exit status of the first rank that failed, 128 and its signal, or mpirun's."""
        if self._failure is None:
            return otherwise
        return self._failure[3] + (128 if self._failure[2] == "signal" else 0)

    def cause(self, status: int) -> str:
        """Return which rank ended the program, and how; mpirun's own words where no rank did."""
        if self._failure is None:
            return "".join(self._own).strip() or f"mpirun ended with exit code {status}"
        rank, process, how, number = self._failure
        end = f"ended with exit code {number}" if how == "exit" else f"was killed by {_signal_name(number)}"
        return f"rank {rank} (process {process}) {end}; all other ranks were ended"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
