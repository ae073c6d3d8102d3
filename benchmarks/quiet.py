"""Whether the machine is otherwise idle.

One other busy process slows down a library of two threads on two cores by a factor of 2 or of 40, depending on how
its threads wait for one another; such figures compare nothing.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

STATISTICS = Path("/proc/stat")  # Linux only; elsewhere the machine counts as idle
IDLE_FIELDS = (3, 4)  # idle, waiting for input or output
COUNTED_FIELDS = 8  # those after it are counted in the first ones too
POLL = 0.5  # seconds


def busy_seconds() -> float:
    """Processor time that all processes have used since the machine started."""
    if not STATISTICS.exists():
        return 0.0
    ticks = [int(field) for field in STATISTICS.read_text().split("\n", 1)[0].split()[1:]][:COUNTED_FIELDS]
    return sum(count for field, count in enumerate(ticks) if field not in IDLE_FIELDS) / os.sysconf("SC_CLK_TCK")


class Watch:
    """Sees from its making on how much of the machine other processes take."""

    def __init__(self) -> None:
        self.wall, self.busy, self.own = time.perf_counter(), busy_seconds(), time.process_time()

    def others(self) -> float:
        """Cores that other processes kept busy, on average; 0.1 is a tenth of one core."""
        elapsed = time.perf_counter() - self.wall
        taken = (busy_seconds() - self.busy) - (time.process_time() - self.own)
        return max(0.0, taken / elapsed) if elapsed else 0.0


class Patience:
    """Waits for the machine to be idle, for a limited number of seconds in all."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def wait(self, limit: float) -> None:
        """Return when others take less than `limit` cores, or patience has run out."""
        while self.left > 0:
            watch = Watch()
            time.sleep(POLL)
            if watch.others() < limit:
                return
            self.left -= POLL
