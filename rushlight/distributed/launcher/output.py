"""The output of ranks: each line with the number of its rank, and what mpirun says of one that died."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path
from typing import IO

_TAG = re.compile(r"^\[[^\]]*?,(\d+)\]<(?:stdout|stderr)>: ?")
_DIED = re.compile(r"process rank (\d+) with PID (\d+) on node (\S+) exited on\s+signal (\d+)")
_EXITED = re.compile(r"Process name: \[.*,(\d+)\]\s+Exit code:\s+(\d+)")
_LEFT = re.compile(r"due to process rank (\d+) with PID (\d+) on node (\S+) exiting improperly")
_ABORTED = re.compile(r"due to process rank (\d+) with PID \d+ on node (\S+) calling")


class Relay:
    """Copies what mpirun prints: lines of ranks under their numbers, its own words only where they explain nothing here."""

    def __init__(self, log_dir: str | None) -> None:
        self._folder = Path(log_dir) if log_dir else None
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._files: dict[str, IO[str]] = {}
        self._own: list[str] = []
        self._lock = threading.Lock()

    def copy(self, source: IO[str], sink: IO[str]) -> None:
        """Copy until the end of the source."""
        for line in source:
            tag = _TAG.match(line)
            if tag is None:
                self._own.append(line)
                continue
            text = line[tag.end() :]
            with self._lock:
                sink.write(f"[rank {tag[1]}] {text}")
                sink.flush()
                if self._folder:
                    self._file(tag[1]).write(text)

    def _file(self, rank: str) -> IO[str]:
        if rank not in self._files:
            assert self._folder is not None
            self._files[rank] = open(self._folder / f"rank_{rank}.log", "w", buffering=1)  # noqa: SIM115  (closed by close)
        return self._files[rank]

    def close(self) -> None:
        """Close the files of ranks."""
        for file in self._files.values():
            file.close()

    def cause(self, status: int) -> str:
        """Return which rank ended the program, and how; mpirun's own words where these say no more."""
        words = "".join(self._own)
        plain = " ".join(words.split())
        if found := _DIED.search(plain):
            name = _signal_name(int(found[4]))
            return f"rank {found[1]} (process {found[2]} on {found[3]}) was killed by {name}; all other ranks were ended"
        if found := _ABORTED.search(plain):
            return f"rank {found[1]} raised an error; all other ranks were ended"
        if found := _LEFT.search(plain):
            return f"rank {found[1]} ended without waiting for the others, which were ended"
        if found := _EXITED.search(plain):
            return f"rank {found[1]} ended with exit code {found[2]}; all other ranks were ended"
        return words.strip() or f"mpirun ended with exit code {status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
